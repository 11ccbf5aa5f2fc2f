// Joins the three tensors in which a safetensors checkpoint stores a matrix of affine groups:
// NAME.weight [rows, cols * bits / 32] of U32, NAME.scales and NAME.biases [rows, cols /
// group_size]. A mixture's matrices are stacked: [experts, rows, ..] in each.
#pragma once

#include "core/status.h"
#include "quant/host_tensor.h"
#include "weights/mlx_quantization.h"
#include "weights/stored_tensor.h"

namespace pagoda {

// Null: the checkpoint lacks it.
struct AffineParts {
  const StoredTensor* codes = nullptr;
  const StoredTensor* scales = nullptr;
  const StoredTensor* biases = nullptr;
};

// Joins the matrix [rows, cols] and checks its parts. A module that the config names has the widths
// given there. For other modules the config has the group size, and the shapes give the bits, as in
// mlx_lm. kDataLoss and kUnsupported name the tensor and say what is wrong. REQUIRES: `codes` is
// not null, and has the type U32.
Result<HostTensor> join_affine(const AffineParts& parts, const MlxQuantization& config);

}  // namespace pagoda
