// The cpu backend's norm and rotation of some tokens, for the ops that they are a part of.
#pragma once

#include <cstdint>

#include "ops/rms_norm_rope/rms_norm_rope.h"
#include "tensor/tensor.h"

namespace pagoda::cpu {

// Writes tokens [begin, end) of what rms_norm_rope() returns to `out`.
void rms_norm_rope_tokens(const Tensor& x, const Tensor& weight, const Tensor& angles,
                          const RmsNormRopeArgs& args, std::int64_t begin, std::int64_t end,
                          const Tensor& out);

}  // namespace pagoda::cpu
