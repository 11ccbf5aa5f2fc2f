// The cpu product on AVX-512 of the formats that avx512/super-inl.h describes.
//
// Few rows wait for memory, and their kernel reads panels without unpacking them. For many rows a
// group of two panels is unpacked into 16 KB of 16-bit integers, scales included. All tiles of rows
// are multiplied with these in the first-level cache, and their sums are in memory between groups.
// Measured with 258 rows: Q4_K reaches 93 to 95 % of the bfloat16 dot products' peak, Q6_K 94 to
// 97 %. With a float scale for each block of 32 or 16 k they reached 83 and 78 %.
#include <immintrin.h>

#include "ops/linear/avx512/super-inl.h"
#include "ops/linear/avx512/tile-inl.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kUnitsOfGroup = kSuperGroup / kUnit;
constexpr int kSteps = kUnit / 2;  // pairs of k of a unit
constexpr int kRowBytes = 2 * kUnit;
// Up to so many rows are multiplied without unpacking panels.
constexpr std::int64_t kFewRows = 12;

template <PanelKind kKind, int kRows>
class FewRowsSuperTile {
 public:
  using Numbers = SuperNumbers<kKind>;
  static constexpr PanelFormat kFormat = Numbers::kFormat;
  static constexpr int kBlocksOfUnit = kUnit / kFormat.block;
  static constexpr int kStepsOfBlock = kSteps / kBlocksOfUnit;
  static constexpr int kUnitBytes = kFormat.group_bytes() / kUnitsOfGroup;
  static constexpr int kLines = (kUnitBytes + kLineBytes - 1) / kLineBytes;

  // Not inlined: it takes all registers.
  __attribute__((noinline)) static void multiply(const PanelProduct& product,
                                                 std::int64_t first_row, std::int64_t panel) {
    const PairReader<kKind> reader;
    const SuperView tile = super_view_of(product.tiles + first_row / kRows * product.tile_bytes,
                                         product.layout, kRows, product.cols);
    const std::byte* group = product.panels + panel * product.panel_bytes;
    __m512 sums[kRows][1];
    set_to_zero(sums);
    const std::int64_t num_groups = kFormat.num_groups(product.cols);
    for (std::int64_t g = 0; g < num_groups; ++g, group += kFormat.group_bytes()) {
      Numbers numbers;
      read_super(group, numbers);
      const SuperRows rows = rows_of<kRows>(tile, product.layout, g);
      __m512 part[kRows][1];
      set_to_zero(part);
      for (int unit = 0; unit < kUnitsOfGroup; ++unit) {
        add_unit(reader, {group, unit, product.prefetch}, numbers,
                 rows.x + unit * kRows * kRowBytes, part);
      }
      const auto minima = [&](auto i, auto) PAGODA_FLATTEN { return numbers.minima[i]; };
      add_group<Numbers::kMinima, kRows>(rows, {numbers.scale}, {numbers.minimum}, minima, part,
                                         sums);
    }
    store_sums<kRows, 1>(sums, product, first_row, panel);
  }

 private:
  PAGODA_INLINE static void add_unit(const PairReader<kKind>& reader, const UnitsAt& unit,
                                     const Numbers& numbers, const std::byte* x,
                                     __m512 (&part)[kRows][1]) {
    __m512i of_unit[kRows];
    for_all<kBlocksOfUnit>([&](auto block) PAGODA_FLATTEN {
      FewRowsBlock<kKind, kRows> sums(nullptr);
      add_products<decltype(block)::kValue>(reader, unit, x, sums);
      const __m512i scale = numbers.scales[unit.first * kBlocksOfUnit + block];
      for_all<kRows>([&](auto r) PAGODA_FLATTEN {
        const __m512i scaled = _mm512_mullo_epi32(scale, sums.sum(r));
        of_unit[r] = block == 0 ? scaled : _mm512_add_epi32(of_unit[r], scaled);
      });
    });
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      part[r][0] = _mm512_add_ps(part[r][0], _mm512_cvtepi32_ps(of_unit[r]));
    });
  }

  // Adds the exact sums over block kBlock of a unit.
  template <int kBlock>
  PAGODA_INLINE static void add_products(const PairReader<kKind>& reader, const UnitsAt& unit,
                                         const std::byte* x, FewRowsBlock<kKind, kRows>& sums) {
    const std::byte* low =
        unit.group + kFormat.low_plane() + unit.first * kFormat.low_bits * kLineBytes;
    const std::byte* high =
        unit.group + kFormat.high_plane() + unit.first * kFormat.high_bits * kLineBytes;
    for_all<kStepsOfBlock>([&](auto i) PAGODA_FLATTEN {
      constexpr int kStep = kBlock * kStepsOfBlock + decltype(i)::kValue;
      // Lines are prefetched one by one: a burst would delay the loads after it.
      prefetch_ahead<kKind, kLines * kStep / kSteps, kLines*(kStep + 1) / kSteps>(
          unit.group + unit.first * kUnitBytes, unit.prefetch);
      sums.template add<kStep>(reader, low, high, x, kRowBytes);
    });
  }
};

constexpr int kPanels = 2;
constexpr int kMostTiles = 48;  // with sums in memory between groups
constexpr int kMostMinima = 16;

// A group of two panels, unpacked.
struct Unpacked {
  __m512i weights[kSuperGroup / 2][kPanels];  // scale times code, pairs of k
  __m512i minima[kMostMinima][kPanels];
  __m512 scale[kPanels];
  __m512 minimum[kPanels];
};

template <PanelKind kKind>
PAGODA_INLINE void unpack_group(const std::byte* group, int p, Unpacked& to) {
  using Numbers = SuperNumbers<kKind>;
  constexpr PanelFormat kFormat = Numbers::kFormat;
  constexpr int kBlocksOfUnit = kUnit / kFormat.block;
  const PairReader<kKind> reader;
  Numbers numbers;
  read_super(group, numbers);
  to.scale[p] = numbers.scale;
  if constexpr (Numbers::kHasMinimum) {
    to.minimum[p] = numbers.minimum;
    for_all<Numbers::kMinima>([&](auto i) PAGODA_FLATTEN { to.minima[i][p] = numbers.minima[i]; });
  }
  for (int unit = 0; unit < kUnitsOfGroup; ++unit) {
    const std::byte* low = group + kFormat.low_plane() + unit * kFormat.low_bits * kLineBytes;
    const std::byte* high = group + kFormat.high_plane() + unit * kFormat.high_bits * kLineBytes;
    for_all<kSteps>([&](auto i) PAGODA_FLATTEN {
      const __m512i scale = numbers.scales[unit * kBlocksOfUnit + i * kBlocksOfUnit / kSteps];
      to.weights[unit * kSteps + i][p] = _mm512_mullo_epi16(
          both_halves(scale), reader.template pair<decltype(i)::kValue>(low, high));
    });
  }
}

// A tile's sums so far, [rows][panels][16], and whether a group is the first or the last one.
struct Waiting {
  float* sums;
  bool is_first;
  bool is_last;
};

// Multiplies a group. Not inlined: it takes all registers.
template <int kMinima, int kRows>
__attribute__((noinline)) void multiply_group(const PanelProduct& product, const Unpacked& group,
                                              const SuperRows& rows, std::int64_t first_row,
                                              std::int64_t panel, const Waiting& waiting) {
  __m512 part[kRows][kPanels];
  set_to_zero(part);
  const std::byte* x = rows.x;
  const __m512i(*weights)[kPanels] = group.weights;
  for (int unit = 0; unit < kUnitsOfGroup; ++unit) {
    __m512i s[kRows][kPanels];
    set_to_zero(s);
    for_all<kSteps>([&](auto i) PAGODA_FLATTEN {
      for_all<kRows>([&](auto r) PAGODA_FLATTEN {
        const __m512i word = broadcast_word(x + r * kRowBytes + 4 * i);
        for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
          s[r][p] = _mm512_dpwssd_epi32(s[r][p], weights[i][p], word);
        });
      });
    });
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
        part[r][p] = _mm512_add_ps(part[r][p], _mm512_cvtepi32_ps(s[r][p]));
      });
    });
    x += kRows * kRowBytes;
    weights += kSteps;
  }
  __m512 sums[kRows][kPanels];
  const auto mask = static_cast<__mmask16>(waiting.is_first ? 0 : 0xffff);
  for_all<kRows>([&](auto r) PAGODA_FLATTEN {
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
      sums[r][p] = _mm512_maskz_load_ps(mask, waiting.sums + (r * kPanels + p) * kPanelColumns);
    });
  });
  const auto minima = [&](auto i, auto p) PAGODA_FLATTEN { return group.minima[i][p]; };
  add_group<kMinima, kRows>(rows, group.scale, group.minimum, minima, part, sums);
  if (waiting.is_last) return store_sums<kRows, kPanels>(sums, product, first_row, panel);
  for_all<kRows>([&](auto r) PAGODA_FLATTEN {
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
      _mm512_store_ps(waiting.sums + (r * kPanels + p) * kPanelColumns, sums[r][p]);
    });
  });
}

// Prefetches `count` lines of both panels, and moves `next` behind them.
PAGODA_INLINE void fetch_some(const std::byte*& next, std::int64_t count,
                              std::int64_t panel_bytes) {
  for (std::int64_t i = 0; i < count; ++i, next += kLineBytes) {
    __builtin_prefetch(next, 0, 2);
    __builtin_prefetch(next + panel_bytes, 0, 2);
  }
}

// Multiplies two panels, from `panel` on, with rows [first_row, end_row).
template <PanelKind kKind, int kRows>
void multiply_panels(const PanelProduct& product, std::int64_t panel, std::int64_t first_row,
                     std::int64_t end_row) {
  using Numbers = SuperNumbers<kKind>;
  constexpr int kGroupBytes = Numbers::kFormat.group_bytes();
  alignas(kLineBytes) float sums[kMostTiles][kRows * kPanels * kPanelColumns];
  Unpacked unpacked;
  const std::int64_t num_groups = Numbers::kFormat.num_groups(product.cols);
  const std::int64_t num_tiles = (end_row - first_row + kRows - 1) / kRows;
  const std::int64_t lines = (kGroupBytes / kLineBytes + num_tiles - 1) / num_tiles;
  const std::byte* panels = product.panels + panel * product.panel_bytes;
  for (std::int64_t g = 0; g < num_groups; ++g) {
    const std::byte* group = panels + g * kGroupBytes;
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
      unpack_group<kKind>(group + p * product.panel_bytes, p, unpacked);
    });
    const bool is_last = g + 1 == num_groups;
    const std::byte* next = is_last ? panels + kPanels * product.panel_bytes : group + kGroupBytes;
    for (std::int64_t tile = 0; tile < num_tiles; ++tile) {
      fetch_some(next, lines, product.panel_bytes);
      const std::int64_t row = first_row + tile * kRows;
      const SuperView view = super_view_of(product.tiles + row / kRows * product.tile_bytes,
                                           product.layout, kRows, product.cols);
      multiply_group<Numbers::kMinima, kRows>(product, unpacked,
                                              rows_of<kRows>(view, product.layout, g), row, panel,
                                              {sums[tile], g == 0, is_last});
    }
  }
}

template <PanelKind kKind, int kRows>
void multiply_few(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  for (std::int64_t panel = begin; panel < end; ++panel) {
    for (std::int64_t row = 0; row < product.num_rows; row += kRows) {
      FewRowsSuperTile<kKind, kRows>::multiply(product, row, panel);
    }
  }
}

template <PanelKind kKind, int kRows>
void multiply_rows(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  if (product.num_rows <= kFewRows) return multiply_few<kKind, kRows>(product, begin, end);
  constexpr std::int64_t kMostRows = kMostTiles * kRows;
  for (std::int64_t panel = begin; panel < end; panel += kPanels) {
    for (std::int64_t row = 0; row < product.num_rows; row += kMostRows) {
      const std::int64_t left = product.num_rows - row;
      multiply_panels<kKind, kRows>(product, panel, row,
                                    row + (left < kMostRows ? left : kMostRows));
    }
  }
}

template <PanelKind kKind>
void multiply_kind(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  switch (product.tile_rows) {
    case 1:
      return multiply_few<kKind, 1>(product, begin, end);
    case 2:
      return multiply_few<kKind, 2>(product, begin, end);
    case 4:
      return multiply_rows<kKind, 4>(product, begin, end);
    default:
      return multiply_rows<kKind, 6>(product, begin, end);
  }
}

}  // namespace

namespace avx512 {

void multiply_super(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  with_kind(product.kind, [&](auto kind) {
    constexpr PanelKind kKind = decltype(kind)::kValue;
    if constexpr (is_super(kKind)) multiply_kind<kKind>(product, begin, end);
  });
}

}  // namespace avx512
}  // namespace pagoda::cpu
