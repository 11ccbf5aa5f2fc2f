// Q8_0: 32 values of a row as signed bytes under one scale; 34 bytes, 8.5 bits a value. From ggml.
//
//   byte    0       2                                     34
//           +-------+-------------------------------------+
//           | scale | q[0]  q[1]  ...               q[31] |
//           | f16   | int8                                |
//           +-------+-------------------------------------+
//
//   x[i] = scale * q[i]
//
// Error bound: the quantiser takes scale = max|x| / 127 and rounds to nearest. Its error is at most
// (1/2 + 127 * 2^-11) of the stored scale: half a step, plus the rounding of the scale to f16 times
// the largest q. (If the scale is a normal f16: at least 2^-14.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/half.h"

namespace pagoda {

struct BlockQ8_0 {
  static constexpr int kValues = 32;
  f16 scale;
  std::int8_t q[kValues];
};
static_assert(sizeof(BlockQ8_0) == 34);

// Decodes whole blocks, 32 values each. REQUIRES: blocks.size() is a multiple of 34.
void dequantize_q8_0(std::span<const std::byte> blocks, float* values);

// Encodes values. REQUIRES: values.size() is a multiple of 32, each finite and at most 65504 in
// magnitude. Writes 34 bytes for 32 values, bit for bit as ggml's own quantiser does.
void quantize_q8_0(std::span<const float> values, std::byte* blocks);

}  // namespace pagoda
