// Q2_K: 256 values of a row as two bits each, in 16 groups of 16 with a scale and a minimum of four
// bits; 84 bytes, 2.625 bits a value. From ggml.
//
//   byte    0                            16                         80      82              84
//           +----------------------------+--------------------------+-------+---------------+
//           | s[0]  s[1]  ...      s[15] | p[0]  p[1]  ...    p[63] | scale | minimum_scale |
//           | low nibble: scales[g],     | 4 q of 2 bits            | f16   | f16           |
//           | high: minima[g]            |                          |       |               |
//           +----------------------------+--------------------------+-------+---------------+
//
//   q[128 h + 32 r + i] stands at bit 2 r of p[32 h + i]           h < 2, r < 4, i < 32
//   x[i] = (scale * scales[g]) * q[i] - minimum_scale * minima[g]  g = i / 16; see super_block.h
//
// Error bound: a value between those of q = 0 and q = 3 is off by at most half a step, 0.5 * scale
// * scales[g].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/half.h"
#include "quant/super_block.h"

namespace pagoda {

struct BlockQ2_K {
  static constexpr int kValues = 256;
  static constexpr int kGroupSize = 16;
  std::uint8_t scales[kValues / kGroupSize];
  std::uint8_t pairs[kValues / 4];
  f16 scale;
  f16 minimum_scale;
};
static_assert(sizeof(BlockQ2_K) == 84);

void unpack(const BlockQ2_K& packed, SuperBlock& block);

// Decodes whole blocks, 256 values each. REQUIRES: blocks.size() is a multiple of 84.
void dequantize_q2_k(std::span<const std::byte> blocks, float* values);

}  // namespace pagoda
