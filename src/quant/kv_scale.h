// Scales of the KV cache's codes: which numbers count, and the reciprocal of a scale.
//
// A code is the integer nearest to x * r, ties to even. The reciprocal r is computed in integers.
// So backends whose division does not round as IEEE 754 requires get the same bits. Numbers below
// 2^-60 count as 0 before the rotation, so that no sum is subnormal: some backends flush subnormal
// numbers to 0.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/half.h"

namespace pagoda {

inline constexpr float kLeastKvMagnitude = 0x1p-60f;

// Returns the least bfloat16 that is at least x. REQUIRES: x >= 0 and finite.
inline bf16 kv_scale_above(float x) {
  return {static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(x) + 0xffffu) >> 16)};
}

// Returns 1 / scale within 2^-22 of it: floor(2^30 / m) * 2^(104 - e) of a scale m * 2^(e - 134)
// whose m has 8 bits. REQUIRES: scale is normal, and at least 2^-92.
inline float kv_reciprocal(bf16 scale) {
  const std::uint32_t exponent = scale.bits >> 7, mantissa = 0x80u | (scale.bits & 0x7fu);
  const std::uint32_t quotient = (1u << 30) / mantissa;  // of 23 bits, exact as a float
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(quotient));
  return std::bit_cast<float>(bits + ((104u - exponent) << 23));
}

}  // namespace pagoda
