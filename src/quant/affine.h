// MLX's affine groups, as `mlx-community` checkpoints store them. A row's values are in groups of
// 32, 64 or 128. Each value is a code of 2, 3, 4, 5, 6 or 8 bits under the group's scale and bias.
//
// A matrix [rows, cols] is three arrays:
//
//   codes            [rows, cols * bits / 32] uint32, little-endian
//   scales, biases   [rows, cols / group_size] float32, float16 or bfloat16
//
// A row's codes are one stream of bits from the lowest bit of its first word up: code c has bits
// [c * bits, (c + 1) * bits), across the borders of words and bytes. A group fills whole words.
// Bytes, highest bit first, by the column that a bit belongs to:
//
//     byte      0        1        2        3        4
//     2 bits    33221100
//     3 bits    22111000 54443332 77766655
//     4 bits    11110000
//     5 bits    11100000 32222211 44443333 66555554 77777666
//     6 bits    11000000 22221111 33333322
//
//   x[c] = scale * code[c] + bias          in float32; two roundings: the product, then the sum;
//   never a fused multiply-add
//
// Under float32 scales that is MLX's own dequantize bit for bit. Under 16-bit scales MLX rounds
// both the product and the sum to the scales' type. So MLX's values are off by up to 2^-8
// (bfloat16) or 2^-11 (float16) of each. Here the product of a 16-bit scale and a code is exact,
// and the sum is rounded once, to float32.
// once, to float32.
//
// Error bound: a quantiser takes scale = (max - min) / (2^bits - 1) and bias = min. Its error is at
// most half a scale, plus the rounding of the bias and of the scale (times the code) to their type.
// MLX's own quantiser moves the scale so that zero has a code, which costs up to one scale at the
// other end of the range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/weight_format.h"

namespace pagoda {

struct AffineLayout {
  int bits = 0;
  int group_size = 0;                               // columns
  WeightFormat scale_format = WeightFormat::kBF16;  // of scales and biases: kF32, kF16 or kBF16

  bool operator==(const AffineLayout&) const = default;
};

inline constexpr int kMaxAffineGroup = 128;

// Returns whether the format has layouts of these widths.
bool is_affine_layout(const AffineLayout& layout);

// Returns the bytes of one row's codes, and of its scales (its biases take as many); cols is a
// multiple of the group.
std::int64_t affine_code_bytes(const AffineLayout& layout, std::int64_t cols);
std::int64_t affine_scale_bytes(const AffineLayout& layout, std::int64_t cols);

// A view of one row, or of some whole groups of a row. The bytes may be unaligned.
struct AffineRow {
  AffineLayout layout;
  std::span<const std::byte> codes;   // [cols * bits / 8]
  std::span<const std::byte> scales;  // [cols / group_size] of scale_format
  std::span<const std::byte> biases;  // likewise
};

// Decodes the integers alone: writes codes.size() * 8 / bits of them.
void affine_codes(const AffineRow& row, std::uint8_t* codes);

// Decodes the scales or the biases of the groups, exactly: each writes cols / group_size values.
void affine_scales(const AffineRow& row, float* scales);
void affine_biases(const AffineRow& row, float* biases);

// Writes the row's values: the definition of the format.
void dequantize_affine_row(const AffineRow& row, float* values);

}  // namespace pagoda
