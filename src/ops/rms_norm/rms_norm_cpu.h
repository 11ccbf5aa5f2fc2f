// The cpu backend's norm of some tokens, for rms_norm and for ops that include it.
#pragma once

#include <cstdint>

#include "ops/rms_norm/rms_norm.h"
#include "tensor/tensor.h"

namespace pagoda::cpu {

// Writes tokens [begin, end) of rms_norm()'s result to `out`.
void rms_norm_tokens(const Tensor& x, const Tensor& weight, const RmsNormArgs& args,
                     std::int64_t begin, std::int64_t end, const Tensor& out);

}  // namespace pagoda::cpu
