// rms_norm: root mean square layer normalisation (Zhang and Sennrich, 2019, arXiv:1910.07467).
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

struct RmsNormArgs {
  float eps = 1e-6f;
};

// Computes out[..., :] = x[..., :] / sqrt(mean(x[..., :]^2) + eps) * weight
//   x       [rows, dim] or [tokens, heads, dim]; the last extent contiguous, the others at any
//           stride (so a part of a joined product needs no copy)
//   weight  [dim] float32
//   out     x's shape and dtype, contiguous
// The mean is taken in float32 in an order that depends on dim alone. Rows do not depend on each
// other.
Tensor rms_norm(Exec& exec, const Tensor& x, const Tensor& weight, const RmsNormArgs& args);

PAGODA_DECLARE_BODIES(Tensor rms_norm(Exec& exec, const Tensor& x, const Tensor& weight,
                                      const RmsNormArgs& args))

}  // namespace pagoda
