#include "ops/linear/row_tiles.h"

#include "backend/cpu/cpu_exec.h"

namespace pagoda::cpu {
namespace {

constexpr std::int64_t kFirstBytes = 8192;

// Returns the height of all tiles: the lowest one of those that need the fewest tiles.
int tile_rows_for(std::int64_t num_rows, int most_rows) {
  const std::int64_t num_tiles = (num_rows + most_rows - 1) / most_rows;
  const auto rows = static_cast<int>((num_rows + num_tiles - 1) / num_tiles);
  for (const int height : kTileHeights) {
    if (height >= rows && height <= most_rows) return height;
  }
  return most_rows;
}

}  // namespace

RowTiles plan_tiles(const KernelChoice& choice, std::int64_t num_rows, std::int64_t cols) {
  const int most_rows = choice.kernels->most_rows(choice.layout, num_rows);
  const int tile_rows = tile_rows_for(num_rows, most_rows);
  return {.kernels = choice.kernels,
          .layout = choice.layout,
          .tile_rows = tile_rows,
          .tile_bytes = choice.kernels->tile_bytes(choice.layout, tile_rows, cols),
          .num_tiles = (num_rows + tile_rows - 1) / tile_rows};
}

void fetch_first_bytes(const std::byte* panel) {
  for (std::int64_t at = 0; at < kFirstBytes; at += kLineBytes) {
    __builtin_prefetch(panel + at, 0, 0);
  }
}

void multiply_panels(const Exec& exec, const WeightSegment& segment, std::int64_t begin,
                     std::int64_t end, const RowTiles& tiles, const TileProduct& product) {
  if (segment.is_interleaved() && end - begin > 2) {
    for (std::int64_t pair = begin; pair < end; pair += 2) {
      TileProduct of_pair = product;
      of_pair.out += (pair - begin) * kPanelColumns;
      if (product.bias) of_pair.bias += (pair - begin) * kPanelColumns;
      multiply_panels(exec, segment, pair, pair + 2, tiles, of_pair);
    }
    return;
  }
  tiles.kernels->multiply({.kind = segment.layout.kind,
                           .layout = tiles.layout,
                           .tiles = product.tiles,
                           .tile_bytes = tiles.tile_bytes,
                           .tile_rows = tiles.tile_rows,
                           .num_rows = product.num_rows,
                           .cols = segment.layout.cols,
                           .panels = segment.panel(begin),
                           .panel_bytes = segment.panel_bytes,
                           .header_area = segment.layout.header_area(),
                           .units_of_header = segment.layout.units_of_header,
                           .header_is_bfloat16 = segment.layout.header_is_bfloat16,
                           .num_columns = segment.rows - begin * kPanelColumns,
                           .out = product.out,
                           .out_stride = product.stride,
                           .bias = product.bias,
                           .prefetch = prefetch_of(exec, segment.layout.kind)},
                          0, end - begin);
}

}  // namespace pagoda::cpu
