// int8: a key or a value as signed bytes under one scale of its token and head.
//
//   codes  [head_dim] int8      code of dimension i at byte i
//   scale  bfloat16
//
//   rotated x[i] = scale * code[i]
//
// An entry is rotated first (quant/kv_rotation.h). scale is max|x| * (1/127) in float32, rounded up
// to bfloat16; code is x * kv_reciprocal(scale), rounded to nearest even, within -127 to 127. An
// entry of zeros has the scale 0 and codes 0; one that is not finite has a NaN as its scale, and
// codes 0.
//
// Error bound: half a scale of a rotated dimension, and 2^-14 of a scale for the reciprocal. The
// scale is at most max|x| / 127 * (1 + 2^-7).
#pragma once

#include <cstdint>
#include <span>

#include "core/half.h"

namespace pagoda {

// The scale of an entry that is not finite.
inline constexpr bf16 kKvNaN = {0x7fc0};

// Encodes a rotated entry; returns its scale.
bf16 encode_kv_int8(std::span<const float> rotated, std::int8_t* codes);
// Decodes to the rotated entry: float32 products, exact.
void decode_kv_int8(const std::int8_t* codes, bf16 scale, std::span<float> rotated);

}  // namespace pagoda
