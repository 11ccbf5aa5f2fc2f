// int4: a key or a value as codes of 4 bits under a scale and a minimum of its token and head.
//
//   codes   [head_dim / 2] uint8    byte i: low nibble dimension i, high i + head_dim / 2
//   scales  bfloat16 scale, then bfloat16 minimum
//
//   rotated x[i] = scale * code[i] + minimum
//
// An entry is rotated first (quant/kv_rotation.h). minimum is the bfloat16 nearest to min(x), zero
// without a sign. scale is the bfloat16 nearest to (max(x) - minimum) * (1/15), a product in
// float32. code is (x - minimum) * kv_reciprocal(scale), rounded to nearest even, within 0 to 15.
// If max(x) is not above the minimum, scale and codes are 0. An entry that is not finite has NaN as
// scale and minimum, and codes 0. So has an entry whose minimum or max(x) - minimum is not finite.
//
// Error bound, all of these together:
// - half a scale of a rotated dimension;
// - 2^-17 of a scale for the reciprocal;
// - at the ends of the range, the rounding of both numbers to bfloat16: 15 * 2^-9 of the scale, and
//   2^-9 of the minimum.
#pragma once

#include <cstdint>
#include <span>

#include "core/half.h"

namespace pagoda {

struct KvInt4Scales {
  bf16 scale;
  bf16 minimum;
};

// Encodes a rotated entry of an even number of dimensions.
KvInt4Scales encode_kv_int4(std::span<const float> rotated, std::uint8_t* codes);
// Decodes to the rotated entry: the float32 product is exact, the sum rounded once.
void decode_kv_int4(const std::uint8_t* codes, KvInt4Scales scales, std::span<float> rotated);

}  // namespace pagoda
