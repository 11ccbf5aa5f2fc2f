// Template arguments of kernels, as Metal spells them: a type or a number. They live as long as the
// process, as GpuFunction requires.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/dtype.h"

namespace pagoda::gpu {

// REQUIRES: a floating type.
std::string_view template_argument(DType dtype);
// REQUIRES: 0 to kMostTemplateNumber.
std::string_view template_argument(std::int64_t number);
// the largest head_dim that a model configuration may have
inline constexpr int kMostTemplateNumber = 1024;

}  // namespace pagoda::gpu
