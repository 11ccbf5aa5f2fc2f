// Tensor: a cheap, counted handle to an array of a backend: dtype, shape, strides, and a place in a
// Buffer.
//
// A Tensor never computes. Views share the buffer; ops (src/ops) make new tensors. Copying a handle
// is thread-safe; the values belong to the engine thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/check.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "tensor/buffer.h"

namespace pagoda {

class Tensor {
 public:
  Tensor() = default;
  // Makes a row-major tensor over the whole of shape, from the buffer's element `offset` on.
  Tensor(BufferRef buffer, DType dtype, const Shape& shape, std::int64_t offset = 0);

  bool defined() const { return static_cast<bool>(buffer_); }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t extent(int i) const { return shape_[i]; }
  std::int64_t stride(int i) const { return strides_[i < 0 ? i + shape_.rank() : i]; }  // elements
  std::int64_t offset() const { return offset_; }  // elements, into the buffer
  std::int64_t num_elements() const { return shape_.num_elements(); }
  bool is_contiguous() const;
  const BufferRef& buffer() const { return buffer_; }

  // Returns the same elements under another shape; needs contiguity.
  Tensor view(const Shape& shape) const;
  // Returns indices [begin, end) of dimension `axis`.
  Tensor slice(int axis, std::int64_t begin, std::int64_t end) const;
  // Returns the same view of another buffer, which must be at least as long.
  Tensor over(BufferRef buffer) const;
  // Splits the last extent in two: [tokens, heads * head_dim] becomes [tokens, heads, head_dim],
  // strides are kept.
  Tensor split_last(std::int64_t outer, std::int64_t inner) const;

  // Returns the first element's address. REQUIRES: the host can read the memory, and T is the
  // dtype's type.
  template <typename T>
  T* data() const {
    PAGODA_CHECK(dtype_of<T> == dtype_, "a tensor is read as another dtype than its own");
    return reinterpret_cast<T*>(buffer_->host()) + offset_;
  }
  std::byte* first_byte() const {
    return buffer_->host() + offset_ * static_cast<std::int64_t>(dtype_size(dtype_));
  }
  // Returns all elements; needs contiguity.
  template <typename T>
  std::span<T> span() const {
    PAGODA_CHECK(is_contiguous(), "a span needs a contiguous tensor");
    return {data<T>(), static_cast<std::size_t>(num_elements())};
  }
  std::span<std::byte> bytes() const {
    PAGODA_CHECK(is_contiguous(), "a span needs a contiguous tensor");
    return {first_byte(), static_cast<std::size_t>(num_elements()) * dtype_size(dtype_)};
  }

 private:
  BufferRef buffer_;
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  std::array<std::int64_t, Shape::kMaxRank> strides_{};
  std::int64_t offset_ = 0;
};

}  // namespace pagoda
