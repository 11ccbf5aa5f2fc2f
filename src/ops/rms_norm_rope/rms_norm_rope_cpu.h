// The cpu backend's norm and rotation of some tokens, for rms_norm_rope and for ops that include
// it.
#pragma once

#include <cstdint>

#include "ops/rms_norm_rope/rms_norm_rope.h"
#include "tensor/tensor.h"

namespace pagoda::cpu {

// Writes tokens [begin, end) of rms_norm_rope()'s result to `out`.
void rms_norm_rope_tokens(const Tensor& x, const Tensor& weight, const Tensor& angles,
                          const RmsNormRopeArgs& args, std::int64_t begin, std::int64_t end,
                          const Tensor& out);

}  // namespace pagoda::cpu
