// The cpu product on AVX-512, many rows: tiles of four or six rows times two panels.
//
// Two panels are taken a slice of k at a time: all rows are multiplied with a slice while it stays
// in the first-level cache. Meanwhile the next slice is prefetched, some lines at each group. If a
// tile prefetched all its lines at its beginning, that would delay it, by half of its time if tiles
// are few. Between slices a tile's sums are kept in memory, so each is still one chain over k, like
// that of a single row (linear_avx512.cc). Measured with 256 rows of BF16: 84 to 87 % of the dot
// products' peak, and 78 to 82 % with whole panels.
#include <immintrin.h>

#include "ops/linear/avx512/few_rows_block-inl.h"
#include "ops/linear/avx512/minima-inl.h"
#include "ops/linear/avx512/tile-inl.h"
#include "ops/linear/avx512/tile_loops-inl.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kPanels = 2;
// The bytes of a slice of both panels. Measured with BF16: 12, 18, 26 and 36 KB reach 83, 85, 85
// and 82 % of the peak. Codes of fewer bits are read fast enough from the second-level cache, and
// would lose 2 % with short slices.
template <PanelKind kKind>
constexpr std::int64_t kSliceBytes = (panel_format(kKind).low_bits == 16 ? 24 : 96) << 10;
// The most tiles with sums in memory between slices.
constexpr int kMostTiles = 48;

// The minima of 256 k of two panels.
struct PanelMinima {
  PackedMinima of[kPanels];
};

// The lines that are prefetched while a tile is multiplied.
struct LinesAhead {
  const std::byte* next = nullptr;  // in the first panel
  std::int64_t count = 0;           // of each panel
  std::int64_t count_of_group = 0;  // the most lines to prefetch at the beginning of a group

  PAGODA_INLINE void fetch(std::int64_t panel_bytes) {
    for (std::int64_t i = 0; i < count_of_group && count > 0; ++i, --count, next += kLineBytes) {
      __builtin_prefetch(next, 0, 2);
      __builtin_prefetch(next + panel_bytes, 0, 2);
    }
  }
};

// Groups [begin, end) of two panels, and the lines to prefetch meanwhile.
struct Slice {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  const PanelMinima* minima = nullptr;  // of each 256 k, if they are integers
  LinesAhead ahead;
};

template <PanelKind kKind, Rounding kRounding, int kRows>
class ManyRowsTile {
 public:
  using Loops = TileLoops<kKind, kRounding>;

  // Multiplies a tile with a slice. `waiting` has the tile's sums between slices,
  // [rows][panels][16]. Not inlined: it takes all registers.
  __attribute__((noinline)) static void multiply(const PanelProduct& product, const Slice& slice,
                                                 std::int64_t first_row, std::int64_t first_panel,
                                                 float* waiting) {
    const PairReader<kKind> reader;
    const std::byte* panel = product.panels + first_panel * product.panel_bytes;
    const std::byte* group =
        panel + product.header_area + slice.begin * Loops::kFormat.group_bytes();
    auto [x, rows] = rows_at<Loops, kRows>(product, first_row, slice.begin * Loops::kUnitsOfGroup);
    const PanelMinima* minima = slice.minima;
    __m512 sums[kRows][kPanels];
    set_to_zero(sums);
    if (!Loops::kHasSpans && slice.begin > 0) load_sums(waiting, sums);
    std::int64_t units_done = slice.begin * Loops::kUnitsOfGroup;
    LinesAhead ahead = slice.ahead;
    for (std::int64_t g = slice.begin; g < slice.end; ++g, group += Loops::kFormat.group_bytes()) {
      ahead.fetch(product.panel_bytes);
      GroupNumbers<kKind> numbers[kPanels];
      read_panels(product, panel, group, g, numbers);
      for (int unit = 0; unit < Loops::kUnitsOfGroup; unit += Loops::kUnitsOfBlock) {
        for_all<Loops::kBlocksOfUnit>([&](auto block) PAGODA_FLATTEN {
          __m512i s[kRows][kPanels];
          start_block<kKind, Loops::kIsBytes>(rows.integer_sums, s);
          for_all<Loops::kUnitsOfBlock>([&](auto u) PAGODA_FLATTEN {
            add_products<decltype(block)::kValue>(reader, group, product.panel_bytes, unit + u,
                                                  x + u * kRows * Loops::kRowBytes, s);
          });
          const int at = unit / Loops::kUnitsOfBlock * Loops::kBlocksOfUnit + block;
          add_block<Loops>(numbers, at, s, rows, sums);
          next_block<Loops, kRows>(rows);
        });
        x += Loops::kUnitsOfBlock * kRows * Loops::kRowBytes;
        units_done += Loops::kUnitsOfBlock;
        const bool is_end = units_done == slice.end * Loops::kUnitsOfGroup;
        if (Loops::kHasSpans && (units_done % Loops::kUnitsOfSpan == 0 || is_end)) {
          const bool is_first = units_done <= Loops::kUnitsOfSpan;
          if constexpr (Loops::kHasGroups) {
            const auto packed = [&](auto p)
                                    PAGODA_FLATTEN -> const PackedMinima& { return minima->of[p]; };
            add_minima<kRows>(rows.pairs, (units_done - 1) % Loops::kUnitsOfSpan + 1, packed, sums);
            ++minima;
          }
          wait_for_spans(scales_of_span<Loops, kRows>(rows), is_first, sums, waiting);
          next_span<Loops, kRows>(rows);
        }
      }
    }
    if (slice.end == Loops::kFormat.num_groups(product.cols)) {
      if constexpr (Loops::kHasSpans) load_sums(waiting, sums);
      if constexpr (Loops::kHasPowers) {
        lower(product, least_powers<kRows>(product, first_row), first_panel, sums);
      }
      return store_sums<kRows, kPanels>(sums, product, first_row, first_panel);
    }
    if constexpr (!Loops::kHasSpans) {
      for_sums([&](auto r, auto p, int at)
                   PAGODA_FLATTEN { _mm512_store_ps(waiting + at, sums[r][p]); });
    }
  }

 private:
  // Adds a span to the sums in memory. Registers have room only for the sums of a span and of a
  // block.
  PAGODA_INLINE static void wait_for_spans(const float* scales, bool is_first,
                                           __m512 (&sums)[kRows][kPanels], float* waiting) {
    __m512 spans[kRows][kPanels];
    for_sums([&](auto r, auto p, int at) PAGODA_FLATTEN {
      const auto mask = static_cast<__mmask16>(is_first ? 0 : 0xffff);
      spans[r][p] = _mm512_maskz_load_ps(mask, waiting + at);
    });
    add_span<kRows, kPanels>(scales, sums, spans);
    for_sums([&](auto r, auto p, int at)
                 PAGODA_FLATTEN { _mm512_store_ps(waiting + at, spans[r][p]); });
  }

  PAGODA_INLINE static void load_sums(const float* waiting, __m512 (&sums)[kRows][kPanels]) {
    for_sums([&](auto r, auto p, int at)
                 PAGODA_FLATTEN { sums[r][p] = _mm512_load_ps(waiting + at); });
  }

  template <class Visit>
  PAGODA_INLINE static void for_sums(const Visit& visit) {
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      for_all<kPanels>([&](auto p)
                           PAGODA_FLATTEN { visit(r, p, (r * kPanels + p) * kPanelColumns); });
    });
  }

  // Adds the exact sums over the part of block kBlock that is in one unit.
  template <int kBlock>
  PAGODA_INLINE static void add_products(const PairReader<kKind>& reader, const std::byte* group,
                                         std::int64_t panel_bytes, int unit, const std::byte* x,
                                         __m512i (&s)[kRows][kPanels]) {
    const std::byte* low =
        group + Loops::kFormat.low_plane() + unit * Loops::kFormat.low_bits * kLineBytes;
    const std::byte* high =
        group + Loops::kFormat.high_plane() + unit * Loops::kFormat.high_bits * kLineBytes;
    for_all<Loops::kStepsOfBlock>([&](auto i) PAGODA_FLATTEN {
      constexpr int kStep = kBlock * Loops::kStepsOfBlock + decltype(i)::kValue;
      Loops::template add_step<kStep>(reader, low, high, panel_bytes, x, s);
    });
  }
};

// Finds the minima of a slice's groups. REQUIRES: the slice begins where a span begins.
template <PanelKind kKind>
void find_minima(const PanelProduct& product, const std::byte* panels, const Slice& slice,
                 PanelMinima* minima) {
  constexpr std::int64_t kGroupBytes = panel_format(kKind).group_bytes();
  for (std::int64_t first = slice.begin; first < slice.end; first += kBlocksOfSuper, ++minima) {
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
      __m512 of_blocks[1][kBlocksOfSuper];
      set_to_zero(of_blocks);
      for (std::int64_t b = 0; b < kBlocksOfSuper && first + b < slice.end; ++b) {
        GroupNumbers<kKind> numbers;
        read_numbers(panels + p * product.panel_bytes + (first + b) * kGroupBytes, numbers);
        of_blocks[0][b] = minima_of(numbers);
      }
      pack_minima(of_blocks[0], minima->of[p]);
    });
  }
}

// Multiplies two panels, from `panel` on, with rows [first_row, end_row).
template <PanelKind kKind, Rounding kRounding, int kRows>
void multiply_panels(const PanelProduct& product, std::int64_t panel, std::int64_t first_row,
                     std::int64_t end_row) {
  constexpr PanelFormat kFormat = panel_format(kKind);
  constexpr std::int64_t kMostGroups = kSliceBytes<kKind> / (kPanels * kFormat.group_bytes());
  alignas(kLineBytes) float sums[kMostTiles][kRows * kPanels * kPanelColumns];
  const std::int64_t num_groups = kFormat.num_groups(product.cols);
  const std::int64_t num_pieces = (num_groups + kMostGroups - 1) / kMostGroups;
  // Slices end where spans do.
  using Loops = TileLoops<kKind, kRounding>;
  constexpr std::int64_t kSpan = Loops::kUnitsOfSpan * kUnit;
  constexpr std::int64_t kGroupsOfSpan = kFormat.group < kSpan ? kSpan / kFormat.group : 1;
  PanelMinima minima[Loops::kHasGroups ? kMostGroups / kGroupsOfSpan + 1 : 1];
  const std::int64_t spans =
      (num_groups + num_pieces * kGroupsOfSpan - 1) / (num_pieces * kGroupsOfSpan);
  const std::int64_t most = spans * kGroupsOfSpan;
  const std::int64_t num_tiles = (end_row - first_row + kRows - 1) / kRows;
  const std::byte* panels = product.panels + panel * product.panel_bytes;
  for (std::int64_t g = 0; g < num_groups; g += most) {
    const bool is_last = g + most >= num_groups;
    Slice slice = {.begin = g, .end = is_last ? num_groups : g + most};
    slice.ahead.next = is_last ? panels + kPanels * product.panel_bytes
                               : panels + product.header_area + slice.end * kFormat.group_bytes();
    const std::int64_t lines =
        (most * kFormat.group_bytes() + (is_last ? product.header_area : 0)) / kLineBytes;
    slice.ahead.count = (lines + num_tiles - 1) / num_tiles;
    const std::int64_t groups = slice.end - slice.begin;
    slice.ahead.count_of_group = (slice.ahead.count + groups - 1) / groups;
    if constexpr (Loops::kHasGroups) {
      find_minima<kKind>(product, panels, slice, minima);
      slice.minima = minima;
    }
    for (std::int64_t tile = 0; tile < num_tiles; ++tile) {
      ManyRowsTile<kKind, kRounding, kRows>::multiply(product, slice, first_row + tile * kRows,
                                                      panel, sums[tile]);
      slice.ahead.next += slice.ahead.count * kLineBytes;
    }
  }
}

template <PanelKind kKind, Rounding kRounding, int kRows>
void multiply_rows(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  for (std::int64_t panel = begin; panel < end; panel += kPanels) {
    for (std::int64_t row = 0; row < product.num_rows; row += kMostTiles * kRows) {
      const std::int64_t left = product.num_rows - row;
      multiply_panels<kKind, kRounding, kRows>(
          product, panel, row, row + (left < kMostTiles * kRows ? left : kMostTiles * kRows));
    }
  }
}

template <PanelKind kKind, Rounding kRounding>
void multiply_rounded(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  if (product.tile_rows == 4) return multiply_rows<kKind, kRounding, 4>(product, begin, end);
  multiply_rows<kKind, kRounding, 6>(product, begin, end);
}

template <PanelKind kKind>
void multiply_kind(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  if constexpr (takes_bytes(kKind)) {
    if (product.layout.rounding == Rounding::kInt8) {
      return multiply_rounded<kKind, Rounding::kInt8>(product, begin, end);
    }
  }
  if constexpr (!is_super(kKind)) multiply_rounded<kKind, Rounding::kInt16>(product, begin, end);
}

}  // namespace

namespace avx512 {

void multiply_many(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  with_kind(product.kind, [&](auto kind) {
    constexpr PanelKind kKind = decltype(kind)::kValue;
    if constexpr (kKind != PanelKind::kF32) multiply_kind<kKind>(product, begin, end);
  });
}

}  // namespace avx512
}  // namespace pagoda::cpu
