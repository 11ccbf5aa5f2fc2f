// Q4_1: 32 values of a row as four bits each, under a scale and above a minimum; 20 bytes, 5 bits a
// value. From ggml.
//
//   byte    0       2         4                                     20
//           +-------+---------+-------------------------------------+
//           | scale | minimum | n[0]  n[1]  ...               n[15] |
//           | f16   | f16     | low nibble: q[i], high: q[i + 16]   |
//           +-------+---------+-------------------------------------+
//
//   x[i] = scale * q[i] + minimum          two roundings: the product, then the sum; never a fused
//   multiply-add
//
// Error bound of a quantiser that takes scale = (max - min) / 15: half a step, and the rounding of
// both numbers to f16.
//
//   (1/2 + 15 * 2^-11) * scale + |minimum| * 2^-11
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/half.h"

namespace pagoda {

struct BlockQ4_1 {
  static constexpr int kValues = 32;
  f16 scale;
  f16 minimum;
  std::uint8_t nibbles[kValues / 2];
};
static_assert(sizeof(BlockQ4_1) == 20);

// Decodes whole blocks, 32 values each. REQUIRES: blocks.size() is a multiple of 20.
void dequantize_q4_1(std::span<const std::byte> blocks, float* values);

}  // namespace pagoda
