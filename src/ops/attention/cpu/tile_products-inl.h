// Products of pairs of bfloat16 by AMX's tiles: 16 or 32 rows times 16 or 32 columns, over blocks
// of 16 pairs.
//
// For each block, a sum grows by the total of two chains of fused multiply-adds from 0: one over
// the first halves of pairs, one over the second. Numbers below 2^-126 count as 0. (Intel's
// Software Developer's Manual, volume 2, TDPBF16PS.)
#pragma once

#include <cstdint>

#include "backend/cpu/tile_registers-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kPairsOfBlock = 16;
constexpr int kTileColumns = 16;

// Strides are words from row to row.
struct TileProduct {
  const std::uint32_t* a = nullptr;  // pairs [rows, num_blocks * kPairsOfBlock]
  std::int64_t a_stride = 0;
  const std::uint32_t* b = nullptr;  // pairs [num_blocks * kPairsOfBlock, columns]
  std::int64_t b_stride = 0;
  int num_blocks = 0;
  float* sums = nullptr;  // [rows, columns]
  std::int64_t sums_stride = 0;
};

// Returns the registers' shapes: 0 to 3 hold sums, 4 and 5 rows of a, 6 and 7 columns of b.
inline TileShapes shapes_of_pairs() {
  TileShapes shapes;
  for (int i = 0; i < 8; ++i) shapes.set(i, kTileRows, kTileRowBytes);
  return shapes;
}

// Computes the sums, and advances lines (tile_ahead.h) with each tile product.
template <int kRowTiles, int kColumnTiles, class Lines>
PAGODA_FOR_TILES inline void multiply_tiles(const TileProduct& product, Lines& lines) {
  constexpr bool kHasRows = kRowTiles == 2, kHasColumns = kColumnTiles == 2;
  constexpr std::int64_t kWord = sizeof(std::uint32_t);
  float* const lower = product.sums + kTileRows * product.sums_stride;
  asm volatile("" ::: "memory");  // memory that tiles read has been written
  _tile_zero(0);
  if constexpr (kHasColumns) _tile_zero(1);
  if constexpr (kHasRows) _tile_zero(2);
  if constexpr (kHasRows && kHasColumns) _tile_zero(3);
  typename Lines::Cursor ahead(lines);
  const std::uint32_t* a = product.a;
  const std::uint32_t* b = product.b;
  for (int block = 0; block < product.num_blocks; ++block) {
    _tile_loadd(6, b, product.b_stride * kWord);
    if constexpr (kHasColumns) _tile_loadd(7, b + kTileColumns, product.b_stride * kWord);
    _tile_loadd(4, a, product.a_stride * kWord);
    if constexpr (kHasRows)
      _tile_loadd(5, a + kTileRows * product.a_stride, product.a_stride * kWord);
    // Loads come before all products: if the core's other thread is busy, they would alternate.
    _tile_dpbf16ps(0, 4, 6);
    ahead.advance();
    if constexpr (kHasColumns) {
      _tile_dpbf16ps(1, 4, 7);
      ahead.advance();
    }
    if constexpr (kHasRows) {
      _tile_dpbf16ps(2, 5, 6);
      ahead.advance();
    }
    if constexpr (kHasRows && kHasColumns) {
      _tile_dpbf16ps(3, 5, 7);
      ahead.advance();
    }
    a += kPairsOfBlock;
    b += kPairsOfBlock * product.b_stride;
  }
  _tile_stored(0, product.sums, product.sums_stride * kWord);
  if constexpr (kHasColumns)
    _tile_stored(1, product.sums + kTileColumns, product.sums_stride * kWord);
  if constexpr (kHasRows) _tile_stored(2, lower, product.sums_stride * kWord);
  if constexpr (kHasRows && kHasColumns)
    _tile_stored(3, lower + kTileColumns, product.sums_stride * kWord);
  asm volatile("" ::: "memory");  // memory that tiles write is read later
}

}  // namespace
}  // namespace pagoda::cpu
