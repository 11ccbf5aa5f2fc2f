// A matrix of affine groups out of the three tensors in which a safetensors checkpoint stores it:
// NAME.weight [rows, cols * bits / 32] of U32, NAME.scales and NAME.biases [rows, cols /
// group_size].
#pragma once

#include "core/status.h"
#include "quant/host_tensor.h"
#include "weights/affine_config.h"
#include "weights/stored_tensor.h"

namespace pagoda {

// Null: the checkpoint lacks it.
struct AffineParts {
  const StoredTensor* codes = nullptr;
  const StoredTensor* scales = nullptr;
  const StoredTensor* biases = nullptr;
};

// Joins the matrix [rows, cols]. `codes` is there, of U32; all else is checked. A module that the
// config names has the widths that it says; for any other its group size holds, and the shapes give
// the bits, as mlx_lm reads such files. kDataLoss, kUnsupported: what is wrong, by the tensor's
// name.
Result<HostTensor> join_affine(const AffineParts& parts, const AffineConfig& config);

}  // namespace pagoda
