// Element types of tensors in memory. The packed formats of weights in files are
// quant/weight_format.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/half.h"

namespace pagoda {

enum class DType : std::uint8_t { kFloat32, kBFloat16, kFloat16, kInt32, kInt8, kUInt8 };

constexpr std::size_t dtype_size(DType dtype) {
  if (dtype == DType::kInt8 || dtype == DType::kUInt8) return 1;
  return dtype == DType::kFloat32 || dtype == DType::kInt32 ? 4 : 2;
}

constexpr std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kFloat16:
      return "float16";
    case DType::kInt32:
      return "int32";
    case DType::kInt8:
      return "int8";
    case DType::kUInt8:
      return "uint8";
  }
  return "unknown";
}

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::kBFloat16;
};
template <>
struct DTypeOf<f16> {
  static constexpr DType value = DType::kFloat16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::kInt8;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kUInt8;
};

template <typename T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace pagoda
