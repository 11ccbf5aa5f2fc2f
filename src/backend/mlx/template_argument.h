// Template arguments of kernels, as Metal spells them: a type, a number. They live as long as the
// process, as a MetalFunction asks.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/dtype.h"

namespace pagoda::mlx {

// REQUIRES: a floating type.
std::string_view template_argument(DType dtype);
// REQUIRES: 0 to kMostTemplateNumber.
std::string_view template_argument(std::int64_t number);
inline constexpr int kMostTemplateNumber = 1024;  // a head_dim, as model configurations are held to

}  // namespace pagoda::mlx
