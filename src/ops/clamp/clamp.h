// clamp: limits numbers to an interval around 0, as OLMoE may do with queries, keys and values
// (Muennighoff et al., 2024, arXiv:2409.02060; `clip_qkv` in its config.json).
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

struct ClampArgs {
  float limit = 0;  // positive
};

// Computes out = min(max(x, -limit), limit)
//   x    [rows, dim] float32; the rows at any stride
//   out  x's shape and dtype, contiguous
// A NaN stays a NaN.
Tensor clamp(Exec& exec, const Tensor& x, const ClampArgs& args);

PAGODA_DECLARE_BODIES(Tensor clamp(Exec& exec, const Tensor& x, const ClampArgs& args))

}  // namespace pagoda
