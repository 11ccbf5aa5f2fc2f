// bfloat16 as the processor's instructions take it and leave it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace emulated {

// Numbers below float32's normal ones are zero to the tiles.
inline float without_denormals(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}
inline float bfloat16_of(const std::uint8_t* bytes) {
  std::uint16_t word;
  std::memcpy(&word, bytes, sizeof(word));
  const std::uint32_t bits = std::uint32_t{word} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return without_denormals(value);
}
// Rounds to the nearest, of two to the even one.
inline std::uint16_t to_bfloat16(float value) {
  value = without_denormals(value);
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace emulated
