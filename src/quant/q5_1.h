// Q5_1: 32 values of a row as five bits each, under a scale and above a minimum; 24 bytes, 6 bits a
// value. From ggml.
//
//   byte    0       2         4                 8                                     24
//           +-------+---------+-----------------+-------------------------------------+
//           | scale | minimum | bit 4 of q[i]   | n[0]  n[1]  ...               n[15] |
//           | f16   | f16     | at bit i (u32)  | low nibble: q[i], high: q[i + 16]   |
//           +-------+---------+-----------------+-------------------------------------+
//
//   x[i] = scale * q[i] + minimum          two roundings: the product, then the sum; never a fused
//   multiply-add
//
// Error bound of a quantiser that takes scale = (max - min) / 31: half a step, and the rounding of
// both numbers to f16.
//
//   (1/2 + 31 * 2^-11) * scale + |minimum| * 2^-11
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/half.h"

namespace pagoda {

struct BlockQ5_1 {
  static constexpr int kValues = 32;
  f16 scale;
  f16 minimum;
  std::uint8_t high_bits[kValues / 8];
  std::uint8_t nibbles[kValues / 2];

  int q(int i) const {  // 0 .. 31
    const int low = i < kValues / 2 ? nibbles[i] & 15 : nibbles[i - kValues / 2] >> 4;
    return low | (high_bits[i / 8] >> (i % 8) & 1) << 4;
  }
};
static_assert(sizeof(BlockQ5_1) == 24);

// Decodes whole blocks, 32 values each. REQUIRES: blocks.size() is a multiple of 24.
void dequantize_q5_1(std::span<const std::byte> blocks, float* values);

}  // namespace pagoda
