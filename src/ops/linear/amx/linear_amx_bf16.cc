// The cpu product by AMX's tiles of weights in bfloat16, with x rounded to bfloat16.
//
// Each output element is, for each 32 k in order (Intel's Software Developer's Manual, volume 2,
// TDPBF16PS):
//
//   even = x[k] * w[k] fused with even, from zero, k = 0, 2, ... 30; odd likewise
//   sum += even + odd
//
// rounded to nearest, with numbers below float32's normal ones as zero. The instruction is the same
// whatever the rows of a tile, and so are the bits.
#include <immintrin.h>

#include "ops/linear/amx/linear_amx.h"
#include "ops/linear/amx/panel_slice-inl.h"
#include "ops/linear/avx512/prefetch-inl.h"

namespace pagoda::cpu {
namespace {

constexpr PanelKind kBfloat16Kind = PanelKind::kBF16;
constexpr std::int64_t kPanelUnitBytes = panel_format(kBfloat16Kind).group_bytes();  // of a panel

std::int64_t units_of(std::int64_t cols) {
  return panel_format(kBfloat16Kind).num_groups(cols);
}

// Returns the registers' shapes: 0 and 1 hold tiles of x, 2 and 3 units of two panels, 4 to 7 sums:
// two of each tile.
TileShapes shapes_for(int tile_rows) {
  TileShapes shapes;
  for (int i = 0; i < 2; ++i) shapes.set(i, tile_rows, kLineBytes);
  for (int i = 2; i < 4; ++i) shapes.set(i, kTileRows, kLineBytes);
  for (int i = 4; i < 8; ++i) shapes.set(i, tile_rows, kLineBytes);
  return shapes;
}

// The sums of one or two tiles of rows and a pair of panels, in registers.
template <int kTiles>
struct PairSums {
  PAGODA_INLINE static void set_to_zero() {
    _tile_zero(4);
    _tile_zero(5);
    if constexpr (kTiles == 1) return;
    _tile_zero(6);
    _tile_zero(7);
  }
  PAGODA_INLINE static void load(const TileWaitingSums* from, int first_panel) {
    _tile_loadd(4, from[0][first_panel].of_row, kLineBytes);
    _tile_loadd(5, from[0][first_panel + 1].of_row, kLineBytes);
    if constexpr (kTiles == 1) return;
    _tile_loadd(6, from[1][first_panel].of_row, kLineBytes);
    _tile_loadd(7, from[1][first_panel + 1].of_row, kLineBytes);
  }
  PAGODA_INLINE static void store(TileWaitingSums* to, int first_panel) {
    _tile_stored(4, to[0][first_panel].of_row, kLineBytes);
    _tile_stored(5, to[0][first_panel + 1].of_row, kLineBytes);
    if constexpr (kTiles == 1) return;
    _tile_stored(6, to[1][first_panel].of_row, kLineBytes);
    _tile_stored(7, to[1][first_panel + 1].of_row, kLineBytes);
  }
  // Adds a unit of x, whose tiles lie tile_bytes apart, times one of two panels.
  PAGODA_INLINE static void add(const std::byte* x, std::int64_t tile_bytes,
                                const std::byte* weights, std::int64_t panel_bytes) {
    _tile_loadd(0, x, kLineBytes);
    _tile_loadd(2, weights, kLineBytes);
    _tile_dpbf16ps(4, 0, 2);
    _tile_loadd(3, weights + panel_bytes, kLineBytes);
    _tile_dpbf16ps(5, 0, 3);
    if constexpr (kTiles == 1) return;
    _tile_loadd(1, x + tile_bytes, kLineBytes);
    _tile_dpbf16ps(6, 1, 2);
    _tile_dpbf16ps(7, 1, 3);
  }
};

// Writes a tile's rows of one panel.
void write_rows(const PanelProduct& product, const WaitingSums& sums, std::int64_t first_row,
                std::int64_t panel) {
  const std::int64_t column = panel * kPanelColumns;
  const std::int64_t columns_left = product.num_columns - column;
  if (columns_left <= 0) return;
  const auto mask =
      static_cast<__mmask16>(columns_left >= kPanelColumns ? 0xffffu : (1u << columns_left) - 1);
  const std::int64_t rows_left = product.num_rows - first_row;
  for (int r = 0; r < product.tile_rows && r < rows_left; ++r) {
    __m512 sum = _mm512_load_ps(sums.of_row[r]);
    if (product.bias) {
      sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, product.bias + column));
    }
    _mm512_mask_storeu_ps(product.out + (first_row + r) * product.out_stride + column, mask, sum);
  }
}

// A tile of few rows, which meets weights where they lie.
void multiply_tile(const PanelProduct& product, std::int64_t first_row, std::int64_t first_panel) {
  const std::byte* x = product.tiles + first_row / product.tile_rows * product.tile_bytes;
  const std::byte* weights = product.panels + first_panel * product.panel_bytes;
  PairSums<1>::set_to_zero();
  asm volatile("" ::: "memory");  // what the tiles read has been written
  for (std::int64_t unit = 0; unit < units_of(product.cols); ++unit) {
    for_all<2>([&](auto p) PAGODA_FLATTEN {
      prefetch_ahead<kBfloat16Kind, 0, kPanelUnitBytes / kLineBytes>(
          weights + p * product.panel_bytes, product.prefetch);
    });
    PairSums<1>::add(x, 0, weights, product.panel_bytes);
    x += product.tile_rows * kLineBytes;
    weights += kPanelUnitBytes;
  }
  TileWaitingSums sums;
  PairSums<1>::store(&sums, 0);
  asm volatile("" ::: "memory");  // the tiles have written
  for (int p = 0; p < 2; ++p) write_rows(product, sums[p], first_row, first_panel + p);
}

void multiply_few(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  const TileRegisters registers(shapes_for(product.tile_rows));
  for (std::int64_t panel = begin; panel < end; panel += 2) {
    for (std::int64_t row = 0; row < product.num_rows; row += product.tile_rows) {
      multiply_tile(product, row, panel);
    }
  }
}

// Many rows, which meet copies of a slice: panels side by side lie so far apart that their lines
// would drive each other out of the first-level cache.
class SlicesProduct {
 public:
  explicit SlicesProduct(const PanelProduct& product) : product_(product) {}

  void multiply(const PanelsAt& panels, std::int64_t first_row, std::int64_t num_tiles) {
    for_slices<kBfloat16Kind, 2>(
        product_, panels, first_row, num_tiles, [&](const PanelsAt& at) { copy(at); },
        [&](const PanelsAt& at, std::int64_t row, TileWaitingSums* sums, int tiles) {
          for (int pair = 0; pair < at.count; pair += 2) {
            if (tiles == 1) multiply_slice<1>(at, pair, row, sums);
            if (tiles == 2) multiply_slice<2>(at, pair, row, sums);
          }
        });
  }

 private:
  static constexpr std::int64_t kSliceBytes = kUnitsOfSlice * kPanelUnitBytes;
  static constexpr std::int64_t kTileUnitBytes = kTileRows * kLineBytes;  // of x

  void copy(const PanelsAt& at) {
    for (int p = 0; p < at.count; ++p) {
      const std::byte* panel = product_.panels + (at.first + p) * product_.panel_bytes;
      __builtin_memcpy(slices_[p], panel + at.first_unit * kPanelUnitBytes,
                       at.num_units * kPanelUnitBytes);
    }
  }

  // A slice of the pair of panels from first_panel of `at` on.
  template <int kTiles>
  void multiply_slice(const PanelsAt& at, int first_panel, std::int64_t first_row,
                      TileWaitingSums* waiting) const {
    using Sums = PairSums<kTiles>;
    const std::byte* x = product_.tiles + first_row / kTileRows * product_.tile_bytes +
                         at.first_unit * kTileUnitBytes;
    if (at.is_first) Sums::set_to_zero();
    if (!at.is_first) Sums::load(waiting, first_panel);
    asm volatile("" ::: "memory");  // what the tiles read has been written
    for (int unit = 0; unit < at.num_units; ++unit, x += kTileUnitBytes) {
      if (first_panel == 0) fetch_next_tiles<kTiles>(x);
      Sums::add(x, product_.tile_bytes, slices_[first_panel] + unit * kPanelUnitBytes, kSliceBytes);
    }
    Sums::store(waiting, first_panel);
    if (!at.is_last) return;
    asm volatile("" ::: "memory");  // the tiles have written
    for_all<kTiles>([&](auto t) PAGODA_FLATTEN {
      for (int p = first_panel; p < first_panel + 2; ++p) {
        write_rows(product_, waiting[t][p], first_row + t * kTileRows, at.first + p);
      }
    });
  }

  // Fetches the same unit of the tiles behind these. They may not exist: then nobody reads it.
  template <int kTiles>
  PAGODA_INLINE void fetch_next_tiles(const std::byte* x) const {
    for_all<kTiles>([&](auto t) PAGODA_FLATTEN {
      const std::byte* next = x + (kTiles + t) * product_.tile_bytes;
      for_all<kTileRows>([&](auto r)
                             PAGODA_FLATTEN { __builtin_prefetch(next + r * kLineBytes, 0, 3); });
    });
  }

  const PanelProduct& product_;
  alignas(kLineBytes) std::byte slices_[kMostPanels][kSliceBytes];
};

// Returns row[k], ... of 16 k, zero behind the last.
PAGODA_INLINE __m512 load_some(const float* row, std::int64_t k, std::int64_t cols) {
  const std::int64_t left = cols - k;
  if (left <= 0) return _mm512_setzero_ps();
  const auto mask = static_cast<__mmask16>(left >= 16 ? 0xffffu : (1u << left) - 1);
  return _mm512_maskz_loadu_ps(mask, row + k);
}

}  // namespace

namespace amx {

std::int64_t bfloat16_tile_bytes(int tile_rows, std::int64_t cols) {
  return units_of(cols) * tile_rows * kLineBytes;
}

void pack_bfloat16_tile(const TileSource& source, std::byte* tile) {
  for (std::int64_t unit = 0; unit < units_of(source.cols); ++unit) {
    const std::int64_t k = unit * kUnit;
    for (int r = 0; r < source.tile_rows; ++r, tile += kLineBytes) {
      const std::int64_t cols = r < source.num_rows ? source.cols : 0;
      const float* row = source.x + r * source.x_stride;
      const __m512 low = load_some(row, k, cols), high = load_some(row, k + 16, cols);
      _mm512_store_si512(tile, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
    }
  }
}

void multiply_bfloat16(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  if (product.num_rows <= product.tile_rows || product.tile_rows < kTileRows) {
    return multiply_few(product, begin, end);
  }
  multiply_panels<SlicesProduct>(product, shapes_for(kTileRows), begin, end);
}

}  // namespace amx
}  // namespace pagoda::cpu
