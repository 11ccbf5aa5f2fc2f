// rms_norm_rope: norms and rotates each head in one pass, as Qwen3 needs it for queries and keys.
#pragma once

#include "ops/dispatch.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rope/rope.h"
#include "tensor/tensor.h"

namespace pagoda {

struct RmsNormRopeArgs {
  RmsNormArgs norm;
  RopeArgs rope;
};

// Computes out = rope(rms_norm(x, weight), angles). Saves a write and a read of all heads.
//   x       [tokens, heads, head_dim]; the last extent contiguous, the others at any stride
//   weight  [head_dim] float32
//   angles  [tokens, 2, pairs] float32, as rope() takes them
//   out     x's shape and dtype, contiguous
Tensor rms_norm_rope(Exec& exec, const Tensor& x, const Tensor& weight, const Tensor& angles,
                     const RmsNormRopeArgs& args);

PAGODA_DECLARE_BODIES(Tensor rms_norm_rope(Exec& exec, const Tensor& x, const Tensor& weight,
                                           const Tensor& angles, const RmsNormRopeArgs& args))

}  // namespace pagoda
