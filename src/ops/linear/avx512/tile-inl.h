// The layout of tiles of x in memory for the AVX-512 product, and the functions that make them.
#pragma once

#include "ops/linear/integer_tile-inl.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {

namespace avx512 {
std::int64_t tile_bytes(const ActivationLayout& layout, int tile_rows, std::int64_t cols);
void pack_tile(const ActivationLayout& layout, const TileSource& source, const TilePart& part,
               std::byte* tile);
// Multiplies tiles of more than two rows.
void multiply_many(const PanelProduct& product, std::int64_t begin, std::int64_t end);
// Multiplies 16-bit tiles with formats for which is_super() is true.
void multiply_super(const PanelProduct& product, std::int64_t begin, std::int64_t end);
}  // namespace avx512

namespace {

// A tile's memory: for each unit of 32 k the integers [rows][32]. Then for each block,
// [blocks][rows]: the scale of its integers, and their sum times the scale; for bytes, also their
// sum as an integer.
//
// 16-bit integers in blocks of up to 32 k share one scale over a span of 128 k. A kernel multiplies
// it with the sum of the span's blocks, and the tile's sums of x do not include it. That costs a
// bit and a half in the worst block, 3e-5 of the span's largest x. It makes products 3 to 5 %
// faster, because a product for each block's sum takes the units that multiply x.
//
// Some layouts store a 16-bit integer as two signed bytes: 256 * high + low. Tiles with planes have
// two planes for each 64 k, [2][rows][64], in the order of bytes. Split tiles have the same two
// numbers of each unit as words, [2][32].
//
// The order of bytes is that of the codes in a line, four k of a column in a word. With codes of
// eight bits a word is k, k + 2, k + 1, k + 3. With four bits the words of a line are
// k + {0, 4, 1, 5} and k + {2, 6, 3, 7}.
constexpr int kPlaneDepth = 64;
constexpr int kPlanesLargest = 32000;  // not above 127 * 256 + 127

// Returns whether tiles of that many rows store x as planes of bytes.
PAGODA_INLINE bool has_planes(const ActivationLayout& layout, int tile_rows) {
  return layout.least_plane_rows > 0 && tile_rows >= layout.least_plane_rows &&
         tile_rows <= layout.most_plane_rows;
}
// Returns whether tiles of that many rows are split (above).
PAGODA_INLINE bool is_split(const ActivationLayout& layout, int tile_rows) {
  return layout.is_split && !has_planes(layout, tile_rows);
}
// Returns the bytes of a row's integers over a unit.
PAGODA_INLINE std::int64_t unit_bytes(const ActivationLayout& layout, int tile_rows) {
  if (layout.rounding == Rounding::kInt8) return kUnit;
  return is_split(layout, tile_rows) ? 4 * kUnit : 2 * kUnit;
}

constexpr int kUnitsOfSpan = 4;
constexpr bool has_spans(Rounding rounding, int block) {
  return rounding == Rounding::kInt16 && block <= kUnit;
}

// In super tiles 256 k of x share a scale. They are for formats whose blocks have a float minimum,
// or integer scales; on AMX, for all formats. After a tile's integers come the scales
// [groups][rows], then words with the sums of blocks' integers, [groups][words][rows]. Words of
// blocks beyond the last group's end are zero.
//
// Integer minima are multiplied with exact sums, one block in a word: the low half has the sum's
// lowest five bits, and the high half the others. A weight is the small difference of two large
// terms, its minimum and its scale times its code. If the sum of x were rounded apart from x, their
// errors would not cancel, and the result's would be 20 times as large. x has 16 bits then, and the
// largest products still fit (32 k x 63 x 31 x 32767).
//
// With other formats a word has two blocks. Their sums are divided by half of a block's length and
// rounded to 16 bits. x has 15 bits then (32 k x 4096 x 16383).
constexpr int kSuperGroup = 256;
constexpr int kSuperLargest = 16383;
constexpr int kLowSumBits = 5;
constexpr bool has_integer_minima(PanelKind kind) {
  return panel_format(kind).group == kSuperGroup && panel_format(kind).has_minimum();
}
constexpr bool is_super(PanelKind kind) {
  return panel_format(kind).group == kSuperGroup;
}
PAGODA_INLINE bool is_super(const ActivationLayout& layout) {
  return layout.span == kSuperGroup;
}
PAGODA_INLINE std::int64_t num_super_groups(std::int64_t cols) {
  return (cols + kSuperGroup - 1) / kSuperGroup;
}
PAGODA_INLINE int num_sum_words(const ActivationLayout& layout) {
  return kSuperGroup / layout.block / (layout.has_exact_sums ? 1 : 2);
}

struct SuperView {
  const std::byte* integers;
  const float* scales;
  const std::byte* sums;
};
PAGODA_INLINE SuperView super_view_of(const std::byte* tile, const ActivationLayout& layout,
                                      int rows, std::int64_t cols) {
  const std::byte* scales = tile + padded_units(cols) * rows * unit_bytes(layout, rows);
  return {tile, reinterpret_cast<const float*>(scales), scales + num_super_groups(cols) * rows * 4};
}

// If blocks have 32 k, their sums follow as floats, [groups][blocks][rows].
constexpr int kBlocksOfSuper = kSuperGroup / kUnit;
PAGODA_INLINE const float* block_sums_of(const SuperView& view, const ActivationLayout& layout,
                                         int rows, std::int64_t cols) {
  const std::int64_t words = num_super_groups(cols) * num_sum_words(layout) * rows;
  return reinterpret_cast<const float*>(view.sums + words * 4);
}

// With 14-bit weights, the scales of x are powers of two. Their exponents are added to a block's
// sum, because multiplying it twice would take the units that multiply x. A block has the least
// power for which its largest magnitude has 15 bits and the sum of magnitudes 18. Then products fit
// in 32 bits. Compared with a largest integer of 4095, most blocks gain one bit, and blocks with
// few large values gain three.
//
// After the integers come the blocks' exponents above the row's least one, as bits of float32,
// [blocks][rows]. Then comes the row's least exponent as a number, [rows]: NaN if x has NaN or
// infinity, and minus infinity if x is zero.
constexpr int kPowersBlock = 64;
constexpr int kPowersLargest = 32767;
constexpr float kPowersMostSum = 262000;  // (that + 32 for the rounding) * 8188 < 2^31
// The range of a row's powers, in binades: the least is 2^-30 of the largest.
constexpr int kPowersRangeOfX = 30;
constexpr int kMantissaBits = 23;
PAGODA_INLINE bool has_powers(const ActivationLayout& layout) {
  return layout.block == kPowersBlock;
}

// Tiles whose planes are multiplied with unsigned codes end with offsets, [units][rows][4]. An
// offset is the sum of half a unit times minus the number that was added to the codes. Each unit
// has two offsets for high bytes and two for low bytes.
constexpr int kOffsetsOfUnit = 4;
PAGODA_INLINE bool has_offsets(const ActivationLayout& layout, int tile_rows) {
  return layout.code_offset != 0 && has_planes(layout, tile_rows) && tile_rows != kHighestTile;
}
PAGODA_INLINE const std::int32_t* offsets_of(const SuperView& view, const ActivationLayout& layout,
                                             int rows, std::int64_t cols) {
  const float* behind =
      block_sums_of(view, layout, rows, cols) + num_super_groups(cols) * kBlocksOfSuper * rows;
  return reinterpret_cast<const std::int32_t*>(behind);
}

struct TileView {
  const std::byte* integers;
  const float* scales;
  const float* sums;  // in tiles with powers, the rows' least exponents
  const std::int32_t* integer_sums;
};
PAGODA_INLINE TileView view_of(const std::byte* tile, const ActivationLayout& layout, int rows,
                               std::int64_t cols) {
  const std::int64_t numbers = num_blocks(layout, cols) * rows;
  const auto* scales =
      reinterpret_cast<const float*>(tile + padded_units(cols) * rows * unit_bytes(layout, rows));
  const float* sums = scales + numbers;
  return {tile, scales, sums, reinterpret_cast<const std::int32_t*>(sums + numbers)};
}

}  // namespace
}  // namespace pagoda::cpu
