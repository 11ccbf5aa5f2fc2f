// rope: rotary position embedding (Su et al., RoFormer, 2021, arXiv:2104.09864).
#pragma once

#include "ops/dispatch.h"
#include "ops/rope/rope_style.h"
#include "tensor/tensor.h"

namespace pagoda {

struct RopeArgs {
  RopeStyle style = RopeStyle::kHalves;
};

// Computes the cosines and sines of every token's angles, which all layers of a step share.
//   positions  [tokens] int32
//   inv_freq   [head_dim / 2] float32, scaling already applied
//   out        [tokens, 2, head_dim / 2] float32: cos(p * inv_freq[i]), then the sines
// Off by 2e-7 at most for angles below 2^20, whose float32 alone would be off by a thirtieth:
// reference and cpu compute in double, kernels for Apple GPUs reduce the exact product.
Tensor rope_angles(Exec& exec, const Tensor& positions, const Tensor& inv_freq);

// Rotates each pair by its token's angle:
//   out[a] = x[a] cos - x[b] sin;  out[b] = x[b] cos + x[a] sin      for the pair (a, b)
//   x       [tokens, heads, head_dim]; the last extent contiguous, the others at any stride
//   angles  [tokens, 2, head_dim / 2] float32, of rope_angles
//   out     x's shape and dtype, contiguous
Tensor rope(Exec& exec, const Tensor& x, const Tensor& angles, const RopeArgs& args);

PAGODA_DECLARE_BODIES(Tensor rope_angles(Exec& exec, const Tensor& positions,
                                         const Tensor& inv_freq))
PAGODA_DECLARE_BODIES(Tensor rope(Exec& exec, const Tensor& x, const Tensor& angles,
                                  const RopeArgs& args))

}  // namespace pagoda
