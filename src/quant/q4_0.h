// Q4_0: 32 values of a row as four bits each under one scale; 18 bytes, 4.5 bits a value. From
// ggml.
//
//   byte    0       2                                     18
//           +-------+-------------------------------------+
//           | scale | n[0]  n[1]  ...               n[15] |
//           | f16   | low nibble: q[i], high: q[i + 16]   |
//           +-------+-------------------------------------+
//
//   x[i] = scale * (q[i] - 8)
//
// q = 0 encodes the value of the largest magnitude, so the scale's sign is opposite to its sign.
//
// Error bound: the quantiser takes scale = extreme / -8. Its error is at most (1 + 8 * 2^-11) of
// the stored |scale|. A value close to -extreme would need q = 16 and gets 15, a whole step off.
// All others are off by at most half a step. The rest is the scale's own rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/half.h"

namespace pagoda {

struct BlockQ4_0 {
  static constexpr int kValues = 32;
  f16 scale;
  std::uint8_t nibbles[kValues / 2];
};
static_assert(sizeof(BlockQ4_0) == 18);

// Decodes whole blocks, 32 values each. REQUIRES: blocks.size() is a multiple of 18.
void dequantize_q4_0(std::span<const std::byte> blocks, float* values);

// Encodes values. REQUIRES: values.size() is a multiple of 32, each finite and at most 65504 in
// magnitude. Writes 18 bytes for 32 values, bit for bit as ggml's own quantiser does.
void quantize_q4_0(std::span<const float> values, std::byte* blocks);

}  // namespace pagoda
