// Q4_K: 256 values of a row as four bits each, in 8 groups of 32 with a scale and a minimum of six
// bits; 144 bytes, 4.5 bits a value. From ggml.
//
//   byte    0       2               4                     16                                  144
//           +-------+---------------+---------------------+-------------------------------------+
//           | scale | minimum_scale | 8 scales, 8 minima  | n[0]  n[1]  ...             n[127] |
//           | f16   | f16           | six_bit_scales.h    | two q of 4 bits                     |
//           +-------+---------------+---------------------+-------------------------------------+
//
//   low nibble of n[32 c + i]: q[64 c + i], high: q[64 c + 32 + i]   c < 4, i < 32
//   x[i] = (scale * scales[g]) * q[i] - minimum_scale * minima[g]    g = i / 32; see super_block.h
//
// Error bound: a value between a group's ends, q = 0 and 15, is at most half a step of (scale *
// scales[g]) off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/half.h"
#include "quant/six_bit_scales.h"

namespace pagoda {

struct BlockQ4_K {
  static constexpr int kValues = 256;
  static constexpr int kGroupSize = 32;
  f16 scale;
  f16 minimum_scale;
  std::uint8_t scales[kSixBitScaleBytes];
  std::uint8_t nibbles[kValues / 2];
};
static_assert(sizeof(BlockQ4_K) == 144);

void unpack(const BlockQ4_K& packed, SuperBlock& block);

// blocks.size() is a multiple of 144; writes 256 values a block.
void dequantize_q4_k(std::span<const std::byte> blocks, float* values);

}  // namespace pagoda
