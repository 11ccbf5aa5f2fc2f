// Q5_0: 32 values of a row as five bits each under one scale; 22 bytes, 5.5 bits a value. From
// ggml.
//
//   byte    0       2                 6                                     22
//           +-------+-----------------+-------------------------------------+
//           | scale | bit 4 of q[i]   | n[0]  n[1]  ...               n[15] |
//           | f16   | at bit i (u32)  | low nibble: q[i], high: q[i + 16]   |
//           +-------+-----------------+-------------------------------------+
//
//   x[i] = scale * (q[i] - 16)
//
// q = 0 encodes the value of the largest magnitude, so the scale's sign is opposite to its sign.
//
// Error bound: the quantiser takes scale = extreme / -16. Its error is at most (1 + 16 * 2^-11) of
// the stored |scale|. A value close to -extreme would need q = 32 and gets 31, a whole step off.
// All others are off by at most half a step. The rest is the scale's own rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/half.h"

namespace pagoda {

struct BlockQ5_0 {
  static constexpr int kValues = 32;
  f16 scale;
  std::uint8_t high_bits[kValues / 8];
  std::uint8_t nibbles[kValues / 2];

  int q(int i) const {  // 0 .. 31
    const int low = i < kValues / 2 ? nibbles[i] & 15 : nibbles[i - kValues / 2] >> 4;
    return low | (high_bits[i / 8] >> (i % 8) & 1) << 4;
  }
};
static_assert(sizeof(BlockQ5_0) == 22);

// Decodes whole blocks, 32 values each. REQUIRES: blocks.size() is a multiple of 22.
void dequantize_q5_0(std::span<const std::byte> blocks, float* values);

// Encodes values. REQUIRES: values.size() is a multiple of 32, each finite and at most 65504 in
// magnitude. Writes 22 bytes for 32 values, bit for bit as ggml's own quantiser does.
void quantize_q5_0(std::span<const float> values, std::byte* blocks);

}  // namespace pagoda
