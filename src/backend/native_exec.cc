#include "backend/native_exec.h"

#include <cstring>

#include "core/machine.h"

namespace pagoda {

Result<NativeExec::Arenas> NativeExec::make_arenas(bool huge_pages) {
  Arenas arenas{.step = {}, .weights = {}, .huge_pages = huge_pages};
  PAGODA_ASSIGN_OR_RETURN(arenas.step, Arena::create({.huge_pages = huge_pages}));
  PAGODA_ASSIGN_OR_RETURN(arenas.weights, Arena::create({.huge_pages = huge_pages}));
  return arenas;
}

Tensor NativeExec::allocate(DType dtype, const Shape& shape) {
  const std::size_t bytes = static_cast<std::size_t>(shape.num_elements()) * dtype_size(dtype);
  return Tensor(arenas_.step->allocate(bytes), dtype, shape);
}

Result<Tensor> NativeExec::allocate_persistent(DType dtype, const Shape& shape) {
  const std::int64_t bytes = shape.num_elements() * static_cast<std::int64_t>(dtype_size(dtype));
  const std::int64_t available = available_memory_bytes();
  if (bytes > available) {
    return resource_exhausted("[memory] expected {} bytes free for {} {}, got {}", bytes,
                              to_string(shape), dtype_name(dtype), available);
  }
  PAGODA_ASSIGN_OR_RETURN(BufferRef buffer,
                          map_zeroed_bytes(static_cast<std::size_t>(bytes), arenas_.huge_pages));
  return Tensor(std::move(buffer), dtype, shape);
}

Tensor NativeExec::upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  Tensor result = allocate(dtype, shape);
  const std::size_t expected = static_cast<std::size_t>(shape.num_elements()) * dtype_size(dtype);
  PAGODA_CHECK(bytes.size() == expected, fmt::format("[upload] expected {} bytes for {}, got {}",
                                                     expected, to_string(shape), bytes.size()));
  if (!bytes.empty()) std::memcpy(result.buffer()->data(), bytes.data(), bytes.size());
  return result;
}

Status NativeExec::evaluate(std::span<const Tensor>) {
  return ok_status();
}

Result<std::span<const std::byte>> NativeExec::read(const Tensor& tensor) {
  PAGODA_CHECK(tensor.is_contiguous(), "[read] expected a contiguous tensor");
  const std::size_t element = dtype_size(tensor.dtype());
  return std::span<const std::byte>(
      tensor.buffer()->data() + static_cast<std::size_t>(tensor.offset()) * element,
      static_cast<std::size_t>(tensor.num_elements()) * element);
}

Result<BufferRef> NativeExec::allocate_weight_bytes(std::size_t bytes) {
  const std::int64_t available = available_memory_bytes();
  if (static_cast<std::int64_t>(bytes) > available) {
    return resource_exhausted("[memory] expected {} bytes free for a weight, got {}", bytes,
                              available);
  }
  return arenas_.weights->allocate(bytes);
}

}  // namespace pagoda
