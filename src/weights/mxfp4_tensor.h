// Joins the two tensors in which a safetensors checkpoint stores rows in MXFP4:
//
//   gpt-oss   NAME_blocks [.., cols / 32, 16] of U8, NAME_scales [.., cols / 32] of U8
//   MLX       NAME.weight [.., cols / 8] of U32,     NAME.scales [.., cols / 32] of U8
//
// The extents before are rows, or matrices and their rows. Bytes lie in the same order in both.
#pragma once

#include "core/status.h"
#include "quant/host_tensor.h"
#include "weights/stored_tensor.h"

namespace pagoda {

// Joins the tensor [.., cols]. `scales` is null if the checkpoint lacks it. kDataLoss names the
// tensor and says what is wrong. REQUIRES: `codes` has bytes of U8 or words of U32.
Result<HostTensor> join_mxfp4(const StoredTensor& codes, const StoredTensor* scales);

}  // namespace pagoda
