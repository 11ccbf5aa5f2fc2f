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
  // Ministral 3 has it of queries. 0: not so.
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
// Off by 2e-7 at most for angles below 2^20, whose float32 alone would be off by a thirtieth:
// reference and cpu compute in double, kernels for Apple GPUs reduce the exact product.
Tensor rope_angles(Exec& exec, const Tensor& positions, const Tensor& inv_freq,
                   const RopeAnglesArgs& args);

// Rotates each pair by its token's angle. They are pairs of the first 2 * pairs elements of a head
// (RopeStyle), which are all of them or a part; the rest stays as it is:
//   out[a] = x[a] cos - x[b] sin;  out[b] = x[b] cos + x[a] sin      for the pair (a, b)
//   x       [tokens, heads, head_dim]; the last extent contiguous, the others at any stride
//   angles  [tokens, 2, pairs] float32, of rope_angles; as many as is_rotary_width() allows
//   out     x's shape and dtype, contiguous
Tensor rope(Exec& exec, const Tensor& x, const Tensor& angles, const RopeArgs& args);

// Checks angles of an op that rotates heads.
void check_angles(std::string_view op, const Tensor& angles, std::int64_t num_tokens,
                  std::int64_t head_dim);

PAGODA_DECLARE_BODIES(Tensor rope_angles(Exec& exec, const Tensor& positions,
                                         const Tensor& inv_freq, const RopeAnglesArgs& args))
PAGODA_DECLARE_BODIES(Tensor rope(Exec& exec, const Tensor& x, const Tensor& angles,
                                  const RopeArgs& args))

}  // namespace pagoda
