// UploadPacket: host arrays that are uploaded together, by Exec::upload_packet().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/check.h"
#include "tensor/exec.h"

namespace pagoda {

class UploadPacket {
 public:
  static constexpr std::size_t kMostArrays = 10;

  // Adds values; upload() makes them the tensor `to`. REQUIRES: the values live until upload(), and
  // `to` outlives this object.
  template <typename T>
  void add(std::span<const T> values, const Shape& shape, Tensor& to) {
    PAGODA_CHECK(size_ < kMostArrays, "[packet] too many arrays");
    arrays_[size_] = {dtype_of<T>, shape, std::as_bytes(values)};
    targets_[size_++] = &to;
  }
  // Adds a list: [values.size()]
  template <typename T>
  void add(const std::vector<T>& values, Tensor& to) {
    add(std::span(values), {static_cast<std::int64_t>(values.size())}, to);
  }

  // Uploads what was added.
  void upload(Exec& exec) {
    if (size_ == 0) return;
    std::array<Tensor, kMostArrays> tensors;
    exec.upload_packet(std::span(arrays_).first(size_), std::span(tensors).first(size_));
    for (std::size_t i = 0; i < size_; ++i) *targets_[i] = std::move(tensors[i]);
    size_ = 0;
  }

 private:
  std::array<HostArray, kMostArrays> arrays_;
  std::array<Tensor*, kMostArrays> targets_{};
  std::size_t size_ = 0;
};

}  // namespace pagoda
