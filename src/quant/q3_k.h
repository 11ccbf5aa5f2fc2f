// Q3_K: 256 values of a row as three bits each, in 16 groups of 16 with a scale of six bits; 110
// bytes, 3.4375 bits a value. From ggml.
//
//   byte    0                    32                    96                   108     110
//           +--------------------+---------------------+--------------------+-------+
//           | m[0]  ...    m[31] | p[0]  ...     p[63] | s[0]  ...    s[11] | scale |
//           | bit 2 of the q     | the q's low 2 bits  | scales[g] + 32     | f16   |
//           +--------------------+---------------------+--------------------+-------+
//
//   bits 0, 1 of q[128 h + 32 r + i] + 4 stand at bit 2 r of p[32 h + i]      h < 2, r < 4, i < 32
//   bit 2     of q[32 r + i] + 4         stands at bit r of m[i]              r < 8, i < 32
//   bits 0..3 of scales[g] + 32          stand at bit 4 (g / 8) of s[g % 8]
//   bits 4, 5 of scales[g] + 32          stand at bit 2 (g / 4) of s[8 + g % 4]
//
//   x[i] = (scale * scales[g]) * q[i]      q = -4 .. 3, scales = -32 .. 31, g = i / 16
//
// Error bound: a value between those of q = -4 and q = 3 is off by at most half a step, 0.5 *
// |scale * scales[g]|.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/half.h"
#include "quant/super_block.h"

namespace pagoda {

struct BlockQ3_K {
  static constexpr int kValues = 256;
  static constexpr int kGroupSize = 16;
  std::uint8_t high_bits[kValues / 8];
  std::uint8_t pairs[kValues / 4];
  std::uint8_t scales[12];
  f16 scale;
};
static_assert(sizeof(BlockQ3_K) == 110);

void unpack(const BlockQ3_K& packed, SuperBlock& block);

// Decodes whole blocks, 256 values each. REQUIRES: blocks.size() is a multiple of 110.
void dequantize_q3_k(std::span<const std::byte> blocks, float* values);

}  // namespace pagoda
