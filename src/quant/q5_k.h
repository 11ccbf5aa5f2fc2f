// Q5_K: 256 values of a row as five bits each, in 8 groups of 32 with a scale and a minimum of six
// bits; 176 bytes, 5.5 bits a value. From ggml.
//
//   byte    0       2               4                    16                 48                  176
//           +-------+---------------+--------------------+------------------+-------------------+
//           | scale | minimum_scale | 8 scales, 8 minima | b[0]  ...  b[31] | n[0]  ...  n[127] |
//           | f16   | f16           | six_bit_scales.h   | bit 4 of the q   | bits 0..3         |
//           +-------+---------------+--------------------+------------------+-------------------+
//
//   low nibble of n[32 c + i]: q[64 c + i], high: q[64 c + 32 + i]   c < 4, i < 32
//   bit 4 of q[32 g + i] stands at bit g of b[i]                     g < 8, i < 32
//   x[i] = (scale * scales[g]) * q[i] - minimum_scale * minima[g]    g = i / 32; see super_block.h
//
// Error bound: a value between those of q = 0 and q = 31 is off by at most half a step, 0.5 * scale
// * scales[g].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/half.h"
#include "quant/six_bit_scales.h"

namespace pagoda {

struct BlockQ5_K {
  static constexpr int kValues = 256;
  static constexpr int kGroupSize = 32;
  f16 scale;
  f16 minimum_scale;
  std::uint8_t scales[kSixBitScaleBytes];
  std::uint8_t high_bits[kValues / 8];
  std::uint8_t nibbles[kValues / 2];
};
static_assert(sizeof(BlockQ5_K) == 176);

void unpack(const BlockQ5_K& packed, SuperBlock& block);

// Decodes whole blocks, 256 values each. REQUIRES: blocks.size() is a multiple of 176.
void dequantize_q5_k(std::span<const std::byte> blocks, float* values);

}  // namespace pagoda
