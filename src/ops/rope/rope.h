// rope: rotary position embedding (Su et al., RoFormer, 2021, arXiv:2104.09864).
#pragma once

#include <cstdint>
#include <string_view>

#include "ops/dispatch.h"
#include "ops/rope/rope_style.h"
#include "tensor/tensor.h"

namespace pagoda {

struct RopeAnglesArgs {
  float factor = 1;  // of cosines and sines: YaRN's and LongRoPE's attention factor
  // Cosines and sines are also multiplied by 1 + growth * log(1 + floor(p / growth_positions)), as
  // Ministral 3 does for queries. 0: they are not.
  float growth = 0;
  int growth_positions = 1;
};

struct RopeArgs {
  RopeStyle style = RopeStyle::kHalves;
};

// Computes the cosines and sines of every token's angles, which all layers of a step share.
//   positions  [tokens] int32
//   inv_freq   [pairs] float32, scaling already applied
//   out        [tokens, 2, pairs] float32: factor * cos(p * inv_freq[i]), then the sines
// Results are off by at most 2e-7 for angles below 2^20; angles in float32 would be off by up to
// 1/30. So reference and cpu use double, and kernels for Apple GPUs reduce the exact product.
Tensor rope_angles(Exec& exec, const Tensor& positions, const Tensor& inv_freq,
                   const RopeAnglesArgs& args);

// Rotates each pair by its token's angle. The pairs (RopeStyle) are those of the first
// 2 * pairs elements of a head; the other elements are copied:
//   out[a] = x[a] cos - x[b] sin;  out[b] = x[b] cos + x[a] sin      for the pair (a, b)
//   x       [tokens, heads, head_dim]; the last extent contiguous, the others at any stride
//   angles  [tokens, 2, pairs] float32, from rope_angles; is_rotary_width() has to allow the pairs
//   out     x's shape and dtype, contiguous
Tensor rope(Exec& exec, const Tensor& x, const Tensor& angles, const RopeArgs& args);

// Checks the angles that are given to an op that rotates heads.
void check_angles(std::string_view op, const Tensor& angles, std::int64_t num_tokens,
                  std::int64_t head_dim);

PAGODA_DECLARE_BODIES(Tensor rope_angles(Exec& exec, const Tensor& positions,
                                         const Tensor& inv_freq, const RopeAnglesArgs& args))
PAGODA_DECLARE_BODIES(Tensor rope(Exec& exec, const Tensor& x, const Tensor& angles,
                                  const RopeArgs& args))

}  // namespace pagoda
