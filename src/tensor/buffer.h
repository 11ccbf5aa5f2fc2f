// Buffer: memory that a backend owns, with a count of the handles that use it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/check.h"

namespace pagoda {

// The place of a buffer's bytes. It decides which code may read them.
enum class MemorySpace : std::uint8_t {
  kHost,    // the host and the backend
  kDevice,  // the backend alone: Exec::read() copies them to the host
};

class Buffer {
 public:
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  MemorySpace space() const { return space_; }
  // Returns the address of the bytes. REQUIRES: space() is kHost.
  std::byte* host() const {
    PAGODA_CHECK(space_ == MemorySpace::kHost, "a device's memory is read as the host's");
    return data_;
  }
  std::size_t size() const { return size_; }  // bytes

 protected:
  // Describes memory. data: null if the host cannot read it.
  Buffer(MemorySpace space, std::byte* data, std::size_t size)
      : space_(space), data_(data), size_(size) {}
  virtual ~Buffer() = default;
  // Returns the memory to its arena or to the system, after the last handle is released.
  virtual void release() = 0;

  const MemorySpace space_;
  std::byte* data_;
  std::size_t size_;

 private:
  friend class BufferRef;
  std::atomic<int> references_{0};
};

// A counted handle. Copying is thread-safe, as with a shared_ptr. A shared_ptr to an arena's span
// would allocate memory, which a decode step must not do; this handle does not.
class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(Buffer* buffer) : buffer_(buffer) { acquire(); }
  BufferRef(const BufferRef& other) : buffer_(other.buffer_) { acquire(); }
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferRef() {
    if (buffer_ && buffer_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      buffer_->release();
  }

  Buffer* get() const { return buffer_; }
  Buffer* operator->() const { return buffer_; }
  explicit operator bool() const { return buffer_ != nullptr; }

 private:
  void acquire() {
    if (buffer_) buffer_->references_.fetch_add(1, std::memory_order_relaxed);
  }
  Buffer* buffer_ = nullptr;
};

}  // namespace pagoda
