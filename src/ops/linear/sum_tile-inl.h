// Tiles of x in 16-bit integers with the integers' sums, for the AVX2 and the NEON products.
#pragma once

#include "ops/linear/integer_tile-inl.h"

namespace pagoda::cpu {
namespace {

// A tile's memory: for each unit of 32 k, 64 bytes for each row. Then [blocks][rows] the scale of
// each block's integers, and [blocks][rows] their sum.
struct TileView {
  const std::byte* units;
  const float* scales;
  const std::int32_t* sums;
};

PAGODA_INLINE TileView view_of(const std::byte* tile, const ActivationLayout& layout, int rows,
                               std::int64_t cols) {
  const std::byte* end = tile + padded_units(cols) * rows * kLineBytes;
  const std::int64_t numbers = num_blocks(layout, cols) * rows;
  return {tile, reinterpret_cast<const float*>(end),
          reinterpret_cast<const std::int32_t*>(end) + numbers};
}

PAGODA_INLINE std::int64_t tile_bytes(const ActivationLayout& layout, int tile_rows,
                                      std::int64_t cols) {
  return integer_tile_bytes(layout, tile_rows, cols, kLineBytes, 2);
}

// One row of a tile. Unit u begins at units + u * tile_rows * 64.
struct TileRow {
  const float* x;  // null: zeros
  std::int64_t cols;
  int tile_rows;
  std::byte* units;
  float* scales;
  std::int32_t* sums;
};

// Returns row r of the tile that is made from `source`.
PAGODA_INLINE TileRow row_of(const ActivationLayout& layout, const TileSource& source,
                             std::byte* tile, int r) {
  const TileView view = view_of(tile, layout, source.tile_rows, source.cols);
  return {.x = source.row(r),
          .cols = source.cols,
          .tile_rows = source.tile_rows,
          .units = tile + r * kLineBytes,
          .scales = const_cast<float*>(view.scales) + r,
          .sums = const_cast<std::int32_t*>(view.sums) + r};
}

}  // namespace
}  // namespace pagoda::cpu
