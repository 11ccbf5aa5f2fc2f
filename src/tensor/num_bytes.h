// num_bytes: the memory that a tensor's elements take.
#pragma once

#include <cstddef>

#include "core/dtype.h"
#include "core/shape.h"

namespace pagoda {

// Returns the bytes of a contiguous tensor of that type and shape.
inline std::size_t num_bytes(DType dtype, const Shape& shape) {
  return static_cast<std::size_t>(shape.num_elements()) * dtype_size(dtype);
}

}  // namespace pagoda
