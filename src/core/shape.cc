#include "core/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pagoda {

std::string to_string(const Shape& shape) {
  return fmt::format("{}", fmt::join(shape.extents(), " x "));
}

}  // namespace pagoda
