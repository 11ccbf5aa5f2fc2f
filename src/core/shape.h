// Shape: up to four extents. A plain value, without allocated memory.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "core/check.h"

namespace pagoda {

class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents)
      : Shape(std::span(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
    PAGODA_CHECK(extents.size() <= kMaxRank, "a shape has at most four extents");
    for (int i = 0; i < rank_; ++i) extents_[i] = extents[i];
  }

  int rank() const { return rank_; }
  // Returns an extent. A negative index counts from the end: shape[-1] is the innermost extent.
  std::int64_t operator[](int i) const { return extents_[i < 0 ? i + rank_ : i]; }
  void set(int i, std::int64_t extent) { extents_[i < 0 ? i + rank_ : i] = extent; }
  std::int64_t num_elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= extents_[i];
    return n;
  }
  std::span<const std::int64_t> extents() const {
    return {extents_.data(), static_cast<std::size_t>(rank_)};
  }
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

// Returns the extents as text: "576 x 1536".
std::string to_string(const Shape& shape);

}  // namespace pagoda
