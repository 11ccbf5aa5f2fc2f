// Q6_K: 256 values of a row as six bits each, in 16 groups of 16 with a scale of eight bits; 210
// bytes, 6.5625 bits a value. From ggml.
//
//   byte    0                     128                 192                 208     210
//           +---------------------+-------------------+-------------------+-------+
//           | n[0]  ...    n[127] | p[0]  ...   p[63] | scales[0 .. 15]   | scale |
//           | q + 32, bits 0..3   | bits 4, 5         | int8              | f16   |
//           +---------------------+-------------------+-------------------+-------+
//
//   low nibble of n[64 h + j]: q[128 h + j] + 32, high: q[128 h + 64 + j] + 32   h < 2, j < 64
//   bits 4, 5 of q[128 h + 32 r + i] + 32 stand at bit 2 r of p[32 h + i]        r < 4, i < 32
//   x[i] = (scale * scales[g]) * q[i]      q = -32 .. 31, g = i / 16
//
// Error bound: a value between those of q = -32 and q = 31 is off by at most half a step, 0.5 *
// |scale * scales[g]|.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/half.h"
#include "quant/super_block.h"

namespace pagoda {

struct BlockQ6_K {
  static constexpr int kValues = 256;
  static constexpr int kGroupSize = 16;
  std::uint8_t nibbles[kValues / 2];
  std::uint8_t pairs[kValues / 4];
  std::int8_t scales[kValues / kGroupSize];
  f16 scale;
};
static_assert(sizeof(BlockQ6_K) == 210);

void unpack(const BlockQ6_K& packed, SuperBlock& block);

// Decodes whole blocks, 256 values each. REQUIRES: blocks.size() is a multiple of 210.
void dequantize_q6_k(std::span<const std::byte> blocks, float* values);

}  // namespace pagoda
