#include "backend/native_exec.h"

#include <algorithm>

#include "core/machine.h"
#include "tensor/num_bytes.h"

namespace pagoda {
namespace {

// Bytes that are allocated before the system is asked again how much is free. Asking takes a tenth
// of a millisecond, and a model has hundreds of weights.
constexpr std::int64_t kMostBytesUnasked = std::int64_t{256} << 20;

// Copies the values of an upload, after a check of their size.
void copy_values(const HostArray& array, std::byte* to) {
  const std::size_t expected = num_bytes(array.dtype, array.shape);
  PAGODA_CHECK(array.bytes.size() == expected,
               fmt::format("[upload] expected {} bytes for {}, got {}", expected,
                           to_string(array.shape), array.bytes.size()));
  std::copy(array.bytes.begin(), array.bytes.end(), to);
}

}  // namespace

Result<NativeExec::Arenas> NativeExec::make_arenas(bool huge_pages) {
  Arenas arenas{.step = {}, .weights = {}, .huge_pages = huge_pages};
  PAGODA_ASSIGN_OR_RETURN(arenas.step, Arena::create({.huge_pages = huge_pages}));
  PAGODA_ASSIGN_OR_RETURN(arenas.weights, Arena::create({.huge_pages = huge_pages}));
  return arenas;
}

Tensor NativeExec::allocate(DType dtype, const Shape& shape) {
  const auto lent = std::find_if(lent_.begin(), lent_.end(), [&](const BufferRef& memory) {
    return memory->size() == num_bytes(dtype, shape);
  });
  if (lent != lent_.end()) {
    Tensor result(std::move(*lent), dtype, shape);
    lent_.erase(lent);
    return result;
  }
  return Tensor(arenas_.step->allocate(num_bytes(dtype, shape)), dtype, shape);
}

Result<Tensor> NativeExec::allocate_persistent(DType dtype, const Shape& shape) {
  const std::size_t bytes = num_bytes(dtype, shape);
  PAGODA_RETURN_IF_ERROR(expect_free(static_cast<std::int64_t>(bytes),
                                     fmt::format("{} {}", to_string(shape), dtype_name(dtype))));
  PAGODA_ASSIGN_OR_RETURN(BufferRef buffer, map_zeroed_bytes(bytes, arenas_.huge_pages));
  return Tensor(std::move(buffer), dtype, shape);
}

Tensor NativeExec::upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  Tensor result = allocate(dtype, shape);
  copy_values({dtype, shape, bytes}, result.buffer()->host());
  return result;
}

// Uploads all arrays to one span of the arena; each begins at a new cache line.
void NativeExec::upload_packet(std::span<const HostArray> arrays, std::span<Tensor> tensors) {
  constexpr std::size_t kLine = Arena::kAlignment;
  const auto room_of = [](const HostArray& array) {
    return (num_bytes(array.dtype, array.shape) + kLine - 1) / kLine * kLine;
  };
  std::size_t total = 0;
  for (const HostArray& array : arrays) total += room_of(array);
  const BufferRef packet = arenas_.step->allocate(total);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    copy_values(arrays[i], packet->host() + begin);
    tensors[i] = Tensor(packet, arrays[i].dtype, arrays[i].shape,
                        static_cast<std::int64_t>(begin / dtype_size(arrays[i].dtype)));
    begin += room_of(arrays[i]);
  }
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
