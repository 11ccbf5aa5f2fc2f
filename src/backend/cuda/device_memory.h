// The memory of tensors on a GPU: results of ops in an arena, and memory that outlives steps.
//
// A result's place returns to the arena when its last handle is released. The next op may get it at
// once, though the GPU has not come so far: one stream runs all work in the order of recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/cuda/device.h"
#include "core/status.h"
#include "tensor/buffer.h"
#include "tensor/hole_list.h"
#include "tensor/tensor.h"

namespace pagoda::cuda {

class DeviceBuffer : public Buffer {
 public:
  Address address() const { return address_; }
  bool is_persistent() const { return is_persistent_; }

  // The evaluation that computes the values; 0: they are there.
  std::uint64_t evaluation = 0;
  // The host's copies of parts that were read, by their first byte and their size. Exec::read()
  // returns them, and a reader of one part keeps it when another is read.
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::byte>> copies;

 protected:
  DeviceBuffer(Address address, std::size_t size, bool is_persistent)
      : Buffer(MemorySpace::kDevice, nullptr, size),
        address_(address),
        is_persistent_(is_persistent) {}

 private:
  Address address_;
  bool is_persistent_;
};

inline DeviceBuffer& buffer_of(const Tensor& tensor) {
  return static_cast<DeviceBuffer&>(*tensor.buffer().get());
}
// Returns how many bytes of the buffer are before the tensor's first element.
inline std::size_t byte_offset(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.offset()) * dtype_size(tensor.dtype());
}
// Returns the address of the tensor's first element.
inline Address address_of(const Tensor& tensor) {
  return buffer_of(tensor).address() + byte_offset(tensor);
}

// Allocates memory that outlives steps, its values undefined. kResourceExhausted if the GPU lacks
// it.
Result<BufferRef> allocate_persistent_bytes(const std::shared_ptr<Device>& device,
                                            std::size_t bytes);

// Takes blocks of memory from the GPU as it needs them, and keeps them. A span is cut from the
// first hole that is large enough. Thread-safe. It lives until its last span is released.
class DeviceArena : public std::enable_shared_from_this<DeviceArena> {
 public:
  static constexpr std::size_t kAlignment = 256;  // bytes; what cuMemAlloc promises, too

  explicit DeviceArena(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~DeviceArena();
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  // Returns `bytes` of undefined values. kResourceExhausted if the GPU lacks memory.
  Result<BufferRef> allocate(std::size_t bytes);

 private:
  class Span;
  struct Block {
    Address base;
    std::size_t size;
    HoleList holes;
  };
  Result<Address> take(std::size_t size);
  void put_back(Address address, std::size_t size);

  std::shared_ptr<Device> device_;
  std::mutex mutex_;
  std::vector<Block> blocks_;
};

}  // namespace pagoda::cuda
