// Writing GGUF files; gguf.h describes the format.
//
// A file is written under another name in the same folder, and renamed when it is complete. So a
// reader sees the old file, or no file, or the complete new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/shape.h"
#include "core/status.h"
#include "quant/weight_format.h"
#include "weights/gguf.h"

namespace pagoda {

// Keys and values, encoded when they are set. A key may be set once only: readers refuse
// duplicates.
class GgufMetadata {
 public:
  // Sets a key to a bool, a number of 8 to 64 bits, text, or a std::vector of one of them.
  template <typename T>
  GgufMetadata& set(std::string_view key, const T& value) {
    start_entry(key);
    put_value(value);
    return *this;
  }
  // Copies an entry of another file unchanged.
  GgufMetadata& copy(const GgufEntry& entry);

  std::uint64_t num_entries() const { return num_entries_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  template <typename T>
  static constexpr GgufType type_of() {
    constexpr int kWidth = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    constexpr GgufType kSigned[] = {GgufType::kInt8, GgufType::kInt16, GgufType::kInt32,
                                    GgufType::kInt64};
    constexpr GgufType kUnsigned[] = {GgufType::kUint8, GgufType::kUint16, GgufType::kUint32,
                                      GgufType::kUint64};
    if constexpr (std::is_convertible_v<T, std::string_view>) return GgufType::kString;
    if constexpr (std::is_same_v<T, bool>) return GgufType::kBool;
    if constexpr (std::is_same_v<T, float>) return GgufType::kFloat32;
    if constexpr (std::is_same_v<T, double>) return GgufType::kFloat64;
    return std::is_signed_v<T> ? kSigned[kWidth] : kUnsigned[kWidth];
  }

  void start_entry(std::string_view key);
  void put_bytes(const void* bytes, std::size_t size);
  void put_text(std::string_view text);

  template <typename T>
  void put_element(const T& value) {
    if constexpr (std::is_convertible_v<T, std::string_view>) {
      put_text(value);
    } else {
      static_assert(std::is_arithmetic_v<T>);
      put_bytes(&value, sizeof(value));
    }
  }
  template <typename T>
  void put_value(const T& value) {
    put_element(static_cast<std::uint32_t>(type_of<T>()));
    put_element(value);
  }
  template <typename T>
  void put_value(const std::vector<T>& values) {
    put_element(static_cast<std::uint32_t>(GgufType::kArray));
    put_element(static_cast<std::uint32_t>(type_of<T>()));
    put_element(static_cast<std::uint64_t>(values.size()));
    for (const T& value : values) put_element(value);
  }

  std::vector<std::byte> bytes_;
  std::uint64_t num_entries_ = 0;
};

struct GgufTensorPlan {
  std::string name;  // GGUF's own: "blk.3.ffn_up.weight"
  Shape shape;       // row-major; rows are whole blocks of the format
  WeightFormat format = WeightFormat::kF32;
};

struct GgufPlan {
  GgufMetadata metadata;
  std::vector<GgufTensorPlan> tensors;
  std::uint64_t alignment = 32;  // the metadata's general.alignment, if it is there
};

// Takes the next bytes of the requested tensor.
using GgufSink = std::function<Status(std::span<const std::byte>)>;
// Passes all bytes of tensor `index` to the sink, in pieces of any size.
using GgufSource = std::function<Status(std::size_t index, const GgufSink& sink)>;

// Writes `path`, requesting the tensors in order. An error of the source is returned, and no file
// is left. Other errors are PartialFile's. PartialFile also removes what killed processes left of
// this file.
Status write_gguf(const std::string& path, const GgufPlan& plan, const GgufSource& source);

}  // namespace pagoda
