#include "backend/native_exec.h"

#include <algorithm>
#include <cstring>

#include "core/machine.h"

namespace pagoda {
namespace {

// Asking takes a tenth of a millisecond, and a model has hundreds of weights.
constexpr std::int64_t kMostBytesUnasked = std::int64_t{256} << 20;

}  // namespace

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
  PAGODA_RETURN_IF_ERROR(
      expect_free(bytes, fmt::format("{} {}", to_string(shape), dtype_name(dtype))));
  PAGODA_ASSIGN_OR_RETURN(BufferRef buffer,
                          map_zeroed_bytes(static_cast<std::size_t>(bytes), arenas_.huge_pages));
  return Tensor(std::move(buffer), dtype, shape);
}

Tensor NativeExec::upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  Tensor result = allocate(dtype, shape);
  const std::size_t expected = static_cast<std::size_t>(shape.num_elements()) * dtype_size(dtype);
  PAGODA_CHECK(bytes.size() == expected, fmt::format("[upload] expected {} bytes for {}, got {}",
                                                     expected, to_string(shape), bytes.size()));
  if (!bytes.empty()) std::memcpy(result.buffer()->host(), bytes.data(), bytes.size());
  return result;
}

void NativeExec::write(const Tensor& tensor, std::int64_t first, std::span<const std::byte> bytes) {
  const std::size_t begin = static_cast<std::size_t>(first) * dtype_size(tensor.dtype());
  const std::span<std::byte> all = tensor.bytes();
  PAGODA_CHECK(begin <= all.size() && bytes.size() <= all.size() - begin,
               "[exec] a write past a tensor's end");
  std::copy(bytes.begin(), bytes.end(), all.begin() + static_cast<std::ptrdiff_t>(begin));
}

Status NativeExec::evaluate(std::span<const Tensor>) {
  return ok_status();
}

void NativeExec::prefault(const Tensor& tensor) {
  pagoda::prefault(tensor.bytes());
}

Result<std::span<const std::byte>> NativeExec::read(const Tensor& tensor) {
  return std::span<const std::byte>(tensor.bytes());
}

Status NativeExec::expect_free(std::int64_t bytes, std::string_view what) {
  if (bytes > known_free_bytes_) {
    const std::int64_t available = available_memory_bytes();
    if (bytes > available) {
      return resource_exhausted("[memory] expected {} bytes free for {}, got {}", bytes, what,
                                available);
    }
    known_free_bytes_ = std::min(available, bytes + kMostBytesUnasked);
  }
  known_free_bytes_ -= bytes;
  return ok_status();
}

Result<BufferRef> NativeExec::allocate_weight_bytes(std::size_t bytes) {
  PAGODA_RETURN_IF_ERROR(expect_free(static_cast<std::int64_t>(bytes), "a weight"));
  return arenas_.weights->allocate(bytes);
}

}  // namespace pagoda
