// The cpu backend's rotation of some tokens, for rope and for ops that include it.
#pragma once

#include <cstdint>

#include "ops/rope/rope.h"
#include "tensor/tensor.h"

namespace pagoda::cpu {

// Writes tokens [begin, end) of rope()'s result to `out`.
void rope_tokens(const Tensor& x, const Tensor& angles, const RopeArgs& args, std::int64_t begin,
                 std::int64_t end, const Tensor& out);

}  // namespace pagoda::cpu
