// soft_cap: limits logits smoothly to an interval, as Gemma 2 and 4 do with their final logits
// (Gemma Team, 2024, arXiv:2408.00118). The attention op caps its scores itself.
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

struct SoftCapArgs {
  float cap = 0;  // positive
};

// Computes out = cap * tanh(x / cap)
//   x    [rows, dim] float32, contiguous
//   out  x's shape and dtype
Tensor soft_cap(Exec& exec, const Tensor& x, const SoftCapArgs& args);

PAGODA_DECLARE_BODIES(Tensor soft_cap(Exec& exec, const Tensor& x, const SoftCapArgs& args))

}  // namespace pagoda
