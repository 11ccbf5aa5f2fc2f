// KvFormat: how the keys, or the values, of a layer's KV cache are stored.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace pagoda {

// kInt8 and kInt4 are codes with scales per token and head: quant/kv_int8.h and quant/kv_int4.h
// define them.
enum class KvFormat : std::uint8_t { kFloat32, kBFloat16, kFloat16, kInt8, kInt4 };

inline constexpr std::array<KvFormat, 5> kKvFormats = {
    KvFormat::kFloat32, KvFormat::kBFloat16, KvFormat::kFloat16, KvFormat::kInt8, KvFormat::kInt4};

struct KvFormatTraits {
  std::string_view name;
  DType dtype;     // type of the elements' array; a kUInt8 holds two codes of 4 bits
  int bits;        // bits of an element
  int num_scales;  // bfloat16 numbers per token and head; 0: elements are the values themselves
};

constexpr KvFormatTraits traits_of(KvFormat format) {
  switch (format) {
    case KvFormat::kFloat32:
      return {"float32", DType::kFloat32, 32, 0};
    case KvFormat::kBFloat16:
      return {"bfloat16", DType::kBFloat16, 16, 0};
    case KvFormat::kFloat16:
      return {"float16", DType::kFloat16, 16, 0};
    case KvFormat::kInt8:
      return {"int8", DType::kInt8, 8, 1};
    case KvFormat::kInt4:
      return {"int4", DType::kUInt8, 4, 2};
  }
  return {};
}

constexpr std::string_view kv_format_name(KvFormat format) {
  return traits_of(format).name;
}
constexpr bool is_quantized(KvFormat format) {
  return traits_of(format).num_scales > 0;
}
// Returns whether an entry of `head_dim` elements has a whole number of bytes.
constexpr bool fits(KvFormat format, std::int64_t head_dim) {
  return head_dim * traits_of(format).bits % 8 == 0;
}
// Returns the bytes of an entry without scales; kv_entry_elements(): its elements in the array.
// REQUIRES: fits(format, head_dim).
constexpr std::int64_t kv_entry_bytes(KvFormat format, std::int64_t head_dim) {
  return head_dim * traits_of(format).bits / 8;
}
constexpr std::int64_t kv_entry_elements(KvFormat format, std::int64_t head_dim) {
  return kv_entry_bytes(format, head_dim) /
         static_cast<std::int64_t>(dtype_size(traits_of(format).dtype));
}

// The formats of a layer's keys and of its values.
struct KvFormats {
  KvFormat keys = KvFormat::kFloat32;
  KvFormat values = KvFormat::kFloat32;

  bool operator==(const KvFormats&) const = default;
};

// Returns the bytes of a token's key and value in one head, scales included.
constexpr std::int64_t kv_bytes(const KvFormats& formats, std::int64_t head_dim) {
  std::int64_t bytes = 0;
  for (const KvFormat format : {formats.keys, formats.values})
    bytes += kv_entry_bytes(format, head_dim) + 2 * traits_of(format).num_scales;
  return bytes;
}

constexpr bool is_quantized(const KvFormats& formats) {
  return is_quantized(formats.keys) || is_quantized(formats.values);
}
// Returns "int8", or "k:int8,v:int4" if keys and values differ.
inline std::string kv_formats_name(const KvFormats& formats) {
  std::string keys(kv_format_name(formats.keys));
  if (formats.keys == formats.values) return keys;
  return "k:" + keys + ",v:" + std::string(kv_format_name(formats.values));
}

}  // namespace pagoda
