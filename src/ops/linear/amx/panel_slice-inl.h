// Panels a slice of k at a time, unpacked for the tiles: all rows of x meet a slice while it stays
// in the first and second-level caches, and the next one is fetched meanwhile.
#pragma once

#include "ops/linear/amx/tile_sums-inl.h"
#include "ops/linear/avx512/tile-inl.h"
#include "ops/linear/avx512/tile_loops-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kMostPanels = 4;  // side by side
constexpr int kUnitsOfSlice = 8;
static_assert(kUnitsOfSlice * kUnit % kSuperGroup == 0);  // spans end where slices do
constexpr std::int64_t kMostTiles = 32;                   // of rows, whose sums wait in memory

// The sums of a tile of rows and a panel.
struct WaitingSums {
  alignas(kLineBytes) float of_row[kTileRows][kPanelColumns];
};

// The part of some panels that is multiplied now.
struct PanelsAt {
  std::int64_t first = 0;
  int count = 0;
  std::int64_t first_unit = 0;
  int num_units = 0;
  bool is_first = false;  // of k
  bool is_last = false;
};

// Lines of panels that lie ahead, some a tile of rows.
class LinesAhead {
 public:
  // Takes `bytes` from `next` on, of each panel.
  PAGODA_INLINE LinesAhead(const std::byte* next, std::int64_t bytes, std::int64_t num_tiles)
      : next_(next), count_((bytes / kLineBytes + num_tiles - 1) / num_tiles) {}

  PAGODA_INLINE void fetch_some(const PanelProduct& product, int num_panels) {
    for (std::int64_t i = 0; i < count_; ++i, next_ += kLineBytes) {
      for (int p = 0; p < num_panels; ++p) {
        __builtin_prefetch(next_ + p * product.panel_bytes, 0, 2);
      }
    }
  }

 private:
  const std::byte* next_;
  std::int64_t count_;
};

// Calls unpack(panels) for each slice of some panels, and then multiply(panels, tile, sums) for
// each tile of rows; `sums` are a tile's, a panel each.
template <PanelKind kKind, class Unpack, class Multiply>
PAGODA_INLINE void for_slices(const PanelProduct& product, const PanelsAt& panels,
                              std::int64_t first_row, std::int64_t num_tiles, const Unpack& unpack,
                              const Multiply& multiply) {
  constexpr PanelFormat kFormat = panel_format(kKind);
  constexpr int kUnitsOfGroup = kFormat.group / kUnit;
  WaitingSums sums[kMostTiles][kMostPanels];
  const std::int64_t num_units = kFormat.num_groups(product.cols) * kUnitsOfGroup;
  const std::byte* first = product.panels + panels.first * product.panel_bytes;
  for (std::int64_t unit = 0; unit < num_units; unit += kUnitsOfSlice) {
    PanelsAt at = panels;
    const std::int64_t left = num_units - unit;
    at.first_unit = unit;
    at.num_units = static_cast<int>(left < kUnitsOfSlice ? left : kUnitsOfSlice);
    at.is_first = unit == 0;
    at.is_last = left <= kUnitsOfSlice;
    unpack(at);
    const std::int64_t end = (unit + at.num_units) / kUnitsOfGroup;
    LinesAhead ahead(at.is_last ? first + panels.count * product.panel_bytes
                                : first + product.header_area + end * kFormat.group_bytes(),
                     kUnitsOfSlice / kUnitsOfGroup * kFormat.group_bytes(), num_tiles);
    for (std::int64_t tile = 0; tile < num_tiles; ++tile) {
      ahead.fetch_some(product, at.count);
      multiply(at, first_row + tile * kTileRows, sums[tile]);
    }
  }
}

// Multiplies all rows by panels [begin, end), some panels and tiles at a time: Product is made of
// `product` and has multiply(panels, first row, tiles), by blocks of kDepth k.
template <class Product, int kDepth>
void multiply_panels(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  const TileRegisters registers(shapes_of_planes<kDepth>());
  Product of_panels(product);
  const std::int64_t num_tiles = (product.num_rows + kTileRows - 1) / kTileRows;
  for (std::int64_t panel = begin; panel < end; panel += kMostPanels) {
    const std::int64_t left = end - panel;
    const PanelsAt panels = {.first = panel,
                             .count = static_cast<int>(left < kMostPanels ? left : kMostPanels)};
    for (std::int64_t tile = 0; tile < num_tiles; tile += kMostTiles) {
      const std::int64_t tiles = num_tiles - tile < kMostTiles ? num_tiles - tile : kMostTiles;
      of_panels.multiply(panels, tile * kTileRows, tiles);
    }
  }
}

// Half of a tile's rows: the registers have room for their sums and a block's.
constexpr int kHalfRows = kTileRows / 2;
using HalfSums = __m512[kHalfRows][1];

PAGODA_INLINE void load_half(const WaitingSums& waiting, int half, bool is_zero, HalfSums& sums) {
  const auto mask = static_cast<__mmask16>(is_zero ? 0 : 0xffff);
  for_all<kHalfRows>([&](auto r) PAGODA_FLATTEN {
    sums[r][0] = _mm512_maskz_load_ps(mask, waiting.of_row[half * kHalfRows + r]);
  });
}
PAGODA_INLINE void store_half(const HalfSums& sums, int half, WaitingSums& waiting) {
  for_all<kHalfRows>([&](auto r) PAGODA_FLATTEN {
    _mm512_store_ps(waiting.of_row[half * kHalfRows + r], sums[r][0]);
  });
}

}  // namespace
}  // namespace pagoda::cpu
