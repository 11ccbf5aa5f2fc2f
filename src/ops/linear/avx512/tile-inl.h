// How tiles of x lie for the AVX-512 product, and the functions that make them.
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
// Multiplies 16-bit tiles of the formats that is_super names.
void multiply_super(const PanelProduct& product, std::int64_t begin, std::int64_t end);
}  // namespace avx512

namespace {

// A tile's memory: for each unit of 32 k the integers [rows][32], then for each block
// [blocks][rows]: the scale of its integers, and their sum times the scale; of bytes their sum too.
//
// 16-bit integers in blocks of up to 32 k share one scale over a span of 128. A kernel applies it
// to what the span's blocks came to; their sums are without it. That costs a bit and a half in the
// worst block, 3e-5 of the span's largest x, and makes products 3 to 5 % faster: multiplying every
// block's sum takes the units that multiply x too.
//
// In tiles of some layouts, 16-bit integers lie as two bytes, both with a sign: 256 * high + low. For
// each 64 k there are two planes, [2][rows][64], in the order of bytes.
// In others each unit has the same two numbers as words, [2][32].
//
// Bytes lie as they meet the codes of a line, four k of a column in a word. With codes of eight
// bits a word is k, k + 2, k + 1, k + 3. With four bits the words of a line are k + {0, 4, 1, 5}
// and k + {2, 6, 3, 7}.
constexpr int kPlaneDepth = 64;
constexpr int kPlanesLargest = 32000;  // not above 127 * 256 + 127

// Returns whether tiles of that many rows store x as planes of bytes.
PAGODA_INLINE bool has_planes(const ActivationLayout& layout, int tile_rows) {
  return layout.least_plane_rows > 0 && tile_rows >= layout.least_plane_rows;
}
// Returns whether they store each unit's bytes as words (above: "In others").
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

// Formats with minima have x share a scale over 256 k, as have those whose blocks have integers for
// scales, 256 k under one more. Behind a tile's integers lie the scales [groups][rows]. Then come
// words with the sums of blocks' integers, [groups][words][rows], zero where the last group has no
// more.
//
// Integer minima meet exact sums, a block in a word: its lowest five bits, and the others in the
// high half. A weight is small beside its minimum and its scale times its code. A sum of x that is
// rounded apart from x makes an error that is as large as theirs: 20 times as large in all. x has
// 16 bits then, by which the largest products still fit (32 k x 63 x 31 x 32767).
//
// Other formats have two blocks in a word. Their sums are divided by half of a block's length and
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

// Where blocks have 32 k, their sums as they are follow, [groups][blocks][rows].
constexpr int kBlocksOfSuper = kSuperGroup / kUnit;
PAGODA_INLINE const float* block_sums_of(const SuperView& view, const ActivationLayout& layout,
                                         int rows, std::int64_t cols) {
  const std::int64_t words = num_super_groups(cols) * num_sum_words(layout) * rows;
  return reinterpret_cast<const float*>(view.sums + words * 4);
}

// Weights of 14 bits meet x under powers of two: their exponents are added to what a block came to,
// where two products would alternate with those of x. A block's power is the least under which its
// largest magnitude has 15 bits and the sum of all 18, so that products fit 32: a bit more than a
// largest of 4095 would have in most blocks, three where few values stand out. Behind the integers
// lie the blocks' exponents above the row's least one, as float32 has them, [blocks][rows], then
// that least one as a number, [rows]: NaN where x is none, minus infinity where x is zero.
constexpr int kPowersBlock = 64;
constexpr int kPowersLargest = 32767;
constexpr float kPowersMostSum = 262000;  // (that + 32 for the rounding) * 8188 < 2^31
// The range of a row's powers, in binades: the least is 2^-30 of the largest.
constexpr int kPowersRangeOfX = 30;
constexpr int kMantissaBits = 23;
PAGODA_INLINE bool has_powers(const ActivationLayout& layout) {
  return layout.block == kPowersBlock;
}

// Offsets behind the other numbers of a tile whose planes meet codes without a sign: minus the number
// by which those are too high, times the sums of half units, two of high bytes and two of low ones,
// [units][rows][4].
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
  const float* sums;  // of tiles with powers the rows' least ones
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
