#include "tensor/tensor.h"

#include <fmt/format.h>

namespace pagoda {

Tensor::Tensor(BufferRef buffer, DType dtype, const Shape& shape, std::int64_t offset)
    : buffer_(std::move(buffer)), dtype_(dtype), shape_(shape), offset_(offset) {
  std::int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides_[i] = stride;
    stride *= shape[i];
  }
}

bool Tensor::is_contiguous() const {
  std::int64_t stride = 1;
  for (int i = shape_.rank() - 1; i >= 0; --i) {
    if (shape_[i] != 1 && strides_[i] != stride) return false;
    stride *= shape_[i];
  }
  return true;
}

Tensor Tensor::view(const Shape& shape) const {
  PAGODA_CHECK(is_contiguous() && shape.num_elements() == num_elements(),
               fmt::format("[view] expected a contiguous tensor of {} elements, got {} for {}",
                           shape.num_elements(), to_string(shape_), to_string(shape)));
  return Tensor(buffer_, dtype_, shape, offset_);
}

Tensor Tensor::slice(int axis, std::int64_t begin, std::int64_t end) const {
  PAGODA_CHECK(axis < shape_.rank() && 0 <= begin && begin <= end && end <= shape_[axis],
               fmt::format("[slice] expected a range within {} of axis {}, got {} to {}",
                           to_string(shape_), axis, begin, end));
  Tensor result = *this;
  result.shape_.set(axis, end - begin);
  result.offset_ += begin * strides_[axis];
  return result;
}

Tensor Tensor::over(BufferRef buffer) const {
  Tensor result = *this;
  result.buffer_ = std::move(buffer);
  return result;
}

Tensor Tensor::split_last(std::int64_t outer, std::int64_t inner) const {
  const int last = shape_.rank() - 1;
  PAGODA_CHECK(last + 1 < Shape::kMaxRank && shape_[last] == outer * inner && strides_[last] == 1,
               fmt::format("[split_last] expected a last extent of {} x {}, got {}", outer, inner,
                           to_string(shape_)));
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  for (int i = 0; i < last; ++i) extents[i] = shape_[i];
  extents[last] = outer;
  extents[last + 1] = inner;
  Tensor result = *this;
  result.shape_ = Shape(std::span<const std::int64_t>(extents.data(), last + 2));
  result.strides_[last] = inner;
  result.strides_[last + 1] = 1;
  return result;
}

}  // namespace pagoda
