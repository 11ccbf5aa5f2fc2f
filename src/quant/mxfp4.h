// MXFP4: 32 values of a row, each a float of four bits under one power of two; 17 bytes, 4.25 bits a
// value. From the Open Compute Project's Microscaling Formats, version 1.0 (2023); the order of a
// block's bytes is ggml's.
//
//   byte    0          1                                     17
//           +----------+-------------------------------------+
//           | exponent | n[0]  n[1]  ...               n[15] |
//           | u8       | low nibble: q[i], high: q[i + 16]   |
//           +----------+-------------------------------------+
//
//   x[i] = 2^(exponent - 128) * kMxfp4Levels[q[i]]
//
// A nibble has a sign, two bits of an exponent and one of a mantissa: 0, 0.5, 1, 1.5, 2, 3, 4 and 6.
// Levels are twice those values, so that they are integers, and the power is half of the format's.
//
// Error bound: a value up to 6 times the format's power is off by at most half the widest gap, that
// power.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pagoda {

inline constexpr std::int8_t kMxfp4Levels[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                 0, -1, -2, -3, -4, -6, -8, -12};

struct BlockMXFP4 {
  static constexpr int kValues = 32;
  std::uint8_t exponent;
  std::uint8_t nibbles[kValues / 2];
};
static_assert(sizeof(BlockMXFP4) == 17);

// Returns 2^(exponent - 128), exactly: 0 and 1 give subnormal numbers.
constexpr float mxfp4_scale(std::uint8_t exponent) {
  const std::uint32_t bits =
      exponent < 2 ? 0x200000u << exponent : (std::uint32_t{exponent} - 1) << 23;
  return std::bit_cast<float>(bits);
}

// Decodes whole blocks, 32 values each. REQUIRES: blocks.size() is a multiple of 17.
void dequantize_mxfp4(std::span<const std::byte> blocks, float* values);

}  // namespace pagoda
