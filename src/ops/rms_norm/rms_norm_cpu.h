// The cpu backend's norm of some tokens, for the ops that it is a part of.
#pragma once

#include <cstdint>

#include "ops/rms_norm/rms_norm.h"
#include "tensor/tensor.h"

namespace pagoda::cpu {

// Writes tokens [begin, end) of what rms_norm() returns to `out`.
void rms_norm_tokens(const Tensor& x, const Tensor& weight, const RmsNormArgs& args,
                     std::int64_t begin, std::int64_t end, const Tensor& out);

}  // namespace pagoda::cpu
