// Tiles of x as the AVX-512 product reads them, and who makes them.
#pragma once

#include "ops/linear/integer_tile-inl.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {

namespace avx512 {
std::int64_t tile_bytes(const ActivationLayout& layout, int tile_rows, std::int64_t cols);
void pack_tile(const ActivationLayout& layout, const TileSource& source, std::byte* tile);
// Tiles of more than two rows.
void multiply_many(const PanelProduct& product, std::int64_t begin, std::int64_t end);
}  // namespace avx512

namespace {

// A tile's memory: for each unit of 32 k the integers [rows][32], then for each block
// [blocks][rows]: the scale of its integers, and their sum times the scale; of bytes their sum too.
//
// Bytes lie as they meet the codes of a line, four k of a column in a word. Of eight bits that is
// k, k + 2, k + 1, k + 3; of four bits the words of a line are k + {0, 4, 1, 5} and k + {2, 6, 3,
// 7}.
struct TileView {
  const std::byte* integers;
  const float* scales;
  const float* sums;
  const std::int32_t* integer_sums;
};
PAGODA_INLINE std::int64_t unit_bytes(const ActivationLayout& layout) {
  return layout.rounding == Rounding::kInt8 ? kUnit : 2 * kUnit;
}

PAGODA_INLINE TileView view_of(const std::byte* tile, const ActivationLayout& layout, int rows,
                               std::int64_t cols) {
  const std::int64_t numbers = num_blocks(layout, cols) * rows;
  const auto* scales =
      reinterpret_cast<const float*>(tile + padded_units(cols) * rows * unit_bytes(layout));
  const float* sums = scales + numbers;
  return {tile, scales, sums, reinterpret_cast<const std::int32_t*>(sums + numbers)};
}

}  // namespace
}  // namespace pagoda::cpu
