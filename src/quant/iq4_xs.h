// IQ4_XS: 256 values of a row, each one of IQ4_NL's 16 levels, in 8 groups of 32 with a scale of
// six bits; 136 bytes, 4.25 bits a value. From ggml.
//
//   byte    0       2             4                  8                                  136
//           +-------+-------------+------------------+------------------------------------+
//           | scale | scales_high | l[0] ...    l[3] | n[0]  n[1]  ...            n[127] |
//           | f16   | u16         | two low nibbles  | two q of 4 bits                    |
//           +-------+-------------+------------------+------------------------------------+
//
//   low nibble of n[16 g + i]: q[32 g + i], high: q[32 g + 16 + i]       g < 8, i < 16
//   bits 0..3 of scales[g] + 32 stand at bit 4 (g % 2) of l[g / 2], bits 4, 5 at bit 2 g of
//   scales_high
//   x[i] = (scale * scales[g]) * kIq4Levels[q[i]]        scales = -32 .. 31, g = i / 32
//
// Error bound: a value between the end levels is off by at most half the widest gap, 12 |scale *
// scales[g]|.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/half.h"
#include "quant/super_block.h"

namespace pagoda {

struct BlockIQ4_XS {
  static constexpr int kValues = 256;
  static constexpr int kGroupSize = 32;
  f16 scale;
  std::uint16_t scales_high;
  std::uint8_t scales_low[kValues / kGroupSize / 2];
  std::uint8_t nibbles[kValues / 2];
};
static_assert(sizeof(BlockIQ4_XS) == 136);

// Unpacks a block. block.q gets the levels themselves, not their indices.
void unpack(const BlockIQ4_XS& packed, SuperBlock& block);

// Decodes whole blocks, 256 values each. REQUIRES: blocks.size() is a multiple of 136.
void dequantize_iq4_xs(std::span<const std::byte> blocks, float* values);

}  // namespace pagoda
