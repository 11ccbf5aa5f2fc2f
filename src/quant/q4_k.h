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
// Error bound: a value between those of q = 0 and q = 15 is off by at most half a step, 0.5 * scale
// * scales[g].
//
// The quantiser weights a value's squared error by its magnitude plus the group's root mean square,
// because large weights contribute most to products. It finds each group's scale and minimum by
// weighted least squares. This starts from 11 roundings of the values, to about 15 steps from
// smallest to largest (an idea of ggml's make_qkx2_quants). The six-bit scale and minimum are then
// chosen among neighbouring integers, by the remaining error. The plain fit, smallest to largest in
// 15 steps, is one of the candidates for the block as a whole. So the weighted error is never above
// the plain fit's, which is at most all of these together:
// - half a step;
// - 7.5 |scale| and half of |minimum_scale|, for rounding the group's two numbers to six bits;
// - 2^-11 of 945 |scale| + 63 |minimum_scale|, for rounding these to f16.
// Over random normal, Laplace and Student-t values the root mean square error is 10 % below the
// plain fit's (half of it with outliers). It is 1 % below that of ggml's quantiser.
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

// Decodes whole blocks, 256 values each. REQUIRES: blocks.size() is a multiple of 144.
void dequantize_q4_k(std::span<const std::byte> blocks, float* values);

// Encodes values. REQUIRES: values.size() is a multiple of 256, each finite and at most 65504 in
// magnitude. Writes 144 bytes for 256 values.
void quantize_q4_k(std::span<const float> values, std::byte* blocks);

}  // namespace pagoda
