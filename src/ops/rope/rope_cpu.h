// The cpu backend's rotation of some tokens, for the ops that it is a part of.
#pragma once

#include <cstdint>

#include "ops/rope/rope.h"
#include "tensor/tensor.h"

namespace pagoda::cpu {

// Writes tokens [begin, end) of what rope() returns to `out`.
void rope_tokens(const Tensor& x, const Tensor& angles, const RopeArgs& args, std::int64_t begin,
                 std::int64_t end, const Tensor& out);

}  // namespace pagoda::cpu
