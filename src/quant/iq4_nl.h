// IQ4_NL: 32 values of a row, each one of 16 unevenly spaced levels under one scale; 18 bytes, 4.5
// bits a value. From ggml.
//
//   byte    0       2                                     18
//           +-------+-------------------------------------+
//           | scale | n[0]  n[1]  ...               n[15] |
//           | f16   | low nibble: q[i], high: q[i + 16]   |
//           +-------+-------------------------------------+
//
//   x[i] = scale * kIq4Levels[q[i]]
//
// The levels are closer together near zero, where most values of a trained weight are.
//
// Error bound: a value between the end levels is off by at most half the widest gap, 12 |scale|.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/half.h"

namespace pagoda {

inline constexpr std::int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

struct BlockIQ4_NL {
  static constexpr int kValues = 32;
  f16 scale;
  std::uint8_t nibbles[kValues / 2];
};
static_assert(sizeof(BlockIQ4_NL) == 18);

// Decodes whole blocks, 32 values each. REQUIRES: blocks.size() is a multiple of 18.
void dequantize_iq4_nl(std::span<const std::byte> blocks, float* values);

}  // namespace pagoda
