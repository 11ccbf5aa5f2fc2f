// The cpu product on AVX-512 with VNNI and VBMI.
//
// Weights become 16-bit integers in registers, up to six bits by a table (vpermw, vpermi2w), and
// meet x as 16-bit integers by block: a block's sum is exact, whatever shares it, and the rounding
// of x costs 2e-5 where bfloat16 would cost 1.3e-3, at the same speed. A line of a plane is loaded
// once and shifted, codes are never written to memory: measured, unpacking into a buffer never beat
// it, even for 512 rows.
//
// This file is compiled for its instruction set, so it keeps to its own functions: an inline
// function of a shared header would be linked into code that runs everywhere.
#include <immintrin.h>

#include "ops/linear/avx512_codes-inl.h"
#include "ops/linear/avx512_minima-inl.h"
#include "ops/linear/avx512_tile-inl.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// Measured on a Zen 5 with 2 panels: six rows leave sums and blocks' sums in registers (85 % of the
// dot products' peak; twelve rows with the sums in memory: 65 to 75 %).
constexpr int kMostRows = 6;

// A tile of rows times kPanels panels.
template <PanelKind kKind, Rounding kRounding, int kRows, int kPanels>
class IntegerTile {
 public:
  using Loops = TileLoops<kKind, kRounding>;
  static constexpr PanelFormat kFormat = Loops::kFormat;
  static constexpr bool kIsBytes = Loops::kIsBytes;
  static constexpr bool kHasSpans = Loops::kHasSpans;
  static constexpr int kRowBytes = Loops::kRowBytes;
  static constexpr int kUnitsOfBlock = Loops::kUnitsOfBlock;
  static constexpr int kBlocksOfUnit = Loops::kBlocksOfUnit;
  static constexpr int kStepsOfBlock = Loops::kStepsOfBlock;
  static constexpr int kUnitsOfGroup = Loops::kUnitsOfGroup;
  static constexpr int kUnitsOfSpan = Loops::kUnitsOfSpan;
  static constexpr int kUnitBytes = kFormat.group_bytes() / kUnitsOfGroup;

  // Of what is multiplied under one scale, or of a unit where that is more.
  static constexpr int kLines = (kUnitBytes * kUnitsOfBlock + kLineBytes - 1) / kLineBytes;

  // Not inlined: it takes all registers.
  __attribute__((noinline)) static void multiply(const PanelProduct& product,
                                                 std::int64_t first_row, std::int64_t first_panel) {
    const PairReader<kKind> reader;
    const std::byte* panel = product.panels + first_panel * product.panel_bytes;
    const std::byte* group = panel + product.header_area;
    auto [x, rows] = rows_at<Loops, kRows>(product, first_row, 0);
    __m512 minima[kPanels][kBlocksOfSuper];
    set_to_zero(minima);
    // The products, or those of a span of x and those of the spans before.
    __m512 sums[kRows][kPanels], spans[kRows][kPanels];
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
        sums[r][p] = _mm512_setzero_ps();
        spans[r][p] = _mm512_setzero_ps();
      });
    });
    const std::int64_t num_groups = kFormat.num_groups(product.cols);
    std::int64_t units_done = 0;
    for (std::int64_t g = 0; g < num_groups; ++g, group += kFormat.group_bytes()) {
      GroupNumbers<kKind> numbers[kPanels];
      read_panels(product, panel, group, g, numbers);
      for (int unit = 0; unit < kUnitsOfGroup; unit += kUnitsOfBlock) {
        for_all<kBlocksOfUnit>([&](auto block) PAGODA_FLATTEN {
          __m512i s[kRows][kPanels];
          start_block<kKind, kIsBytes>(rows.integer_sums, s);
          for_all<kUnitsOfBlock>([&](auto u) PAGODA_FLATTEN {
            add_products<decltype(block)::kValue, decltype(u)::kValue>(
                reader, group, product.panel_bytes, unit, x + u * kRows * kRowBytes, s);
          });
          const int at = unit / kUnitsOfBlock * kBlocksOfUnit + block;
          add_block<Loops>(numbers, at, s, rows, sums);
          next_block<Loops, kRows>(rows);
        });
        if constexpr (Loops::kHasGroups) {
          for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
            minima[p][units_done % kUnitsOfSpan] = minima_of(numbers[p]);
          });
        }
        x += kUnitsOfBlock * kRows * kRowBytes;
        units_done += kUnitsOfBlock;
        const bool is_last = units_done == num_groups * kUnitsOfGroup;
        if (kHasSpans && (units_done % kUnitsOfSpan == 0 || is_last)) {
          if constexpr (Loops::kHasGroups)
            add_float_minima(rows.pairs, (units_done - 1) % kUnitsOfSpan + 1, minima, sums);
          add_span(scales_of_span<Loops, kRows>(rows), sums, spans);
          next_span<Loops, kRows>(rows);
        }
      }
    }
    lower<Loops>(product, first_row, first_panel, sums);
    store_sums<kRows, kPanels>(kHasSpans ? spans : sums, product, first_row, first_panel);
  }

 private:
  // Adds what a span's minima come to, and forgets them.
  PAGODA_INLINE static void add_float_minima(const std::byte* pairs, std::int64_t num_units,
                                             __m512 (&minima)[kPanels][kBlocksOfSuper],
                                             __m512 (&sums)[kRows][kPanels]) {
    PackedMinima packed[kPanels];
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN { pack_minima(minima[p], packed[p]); });
    add_minima(
        pairs, num_units, [&](auto p) PAGODA_FLATTEN -> const PackedMinima& { return packed[p]; },
        sums);
    set_to_zero(minima);
  }

  // Adds the exact sums over what block kBlock has of unit `first_unit` + kUnitOfBlock.
  template <int kBlock, int kUnitOfBlock>
  PAGODA_INLINE static void add_products(const PairReader<kKind>& reader, const std::byte* group,
                                         std::int64_t panel_bytes, int first_unit,
                                         const std::byte* x, __m512i (&s)[kRows][kPanels]) {
    constexpr int kPart = kBlock + kUnitOfBlock;
    constexpr int kStepsAtOnce = kStepsOfBlock * kUnitsOfBlock * kBlocksOfUnit;
    const int unit = first_unit + kUnitOfBlock;
    const std::byte* low = group + kFormat.low_plane() + unit * kFormat.low_bits * kLineBytes;
    const std::byte* high = group + kFormat.high_plane() + unit * kFormat.high_bits * kLineBytes;
    for_all<kStepsOfBlock>([&](auto i) PAGODA_FLATTEN {
      constexpr int kStep = kBlock * kStepsOfBlock + decltype(i)::kValue;
      // One by one: a burst would hold up the loads behind it.
      constexpr int kAt = kPart * kStepsOfBlock + decltype(i)::kValue;
      prefetch_ahead<kKind, kLines * kAt / kStepsAtOnce, kLines*(kAt + 1) / kStepsAtOnce>(
          group + first_unit * kUnitBytes);
      Loops::template add_step<kStep>(reader, low, high, panel_bytes, x, s);
    });
  }
};

template <class Tile, int kRows, int kPanels>
void multiply_tiles(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  for (std::int64_t panel = begin; panel < end; panel += kPanels) {
    for (std::int64_t row = 0; row < product.num_rows; row += kRows) {
      Tile::multiply(product, row, panel);
    }
  }
}

// Few rows wait for memory: one panel at a time is one ascending stream.
template <PanelKind kKind, Rounding kRounding>
void multiply_rounded(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  switch (product.tile_rows) {
    case 1:
      return multiply_tiles<IntegerTile<kKind, kRounding, 1, 1>, 1, 1>(product, begin, end);
    case 2:
      return multiply_tiles<IntegerTile<kKind, kRounding, 2, 1>, 2, 1>(product, begin, end);
    default:
      return;  // multiply_many
  }
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

bool layout_of(PanelKind kind, ActivationLayout& layout) {
  if (!integer_layout_of(kind, 32767, layout)) return false;
  if (is_super(kind) || has_float_minima(kind)) {
    // Only minima need sums of blocks of 16.
    layout.block = panel_format(kind).has_minimum() ? panel_format(kind).block : kUnit;
    layout.largest_integer = kSuperLargest;
    layout.span = kSuperGroup;
  }
  if (kind == PanelKind::kInt14) layout.largest_integer = kPowersLargest;
  return true;
}

bool int8_layout_of(PanelKind kind, ActivationLayout& layout) {
  if (!takes_bytes(kind)) return false;
  layout = {.rounding = Rounding::kInt8,
            .block = kUnit,
            .largest_integer = 127,
            .is_nibbles = panel_format(kind).low_bits == 4};
  return true;
}

int most_rows(const ActivationLayout&) {
  return kMostRows;
}

void multiply(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  if (is_super(product.kind) && product.layout.rounding == Rounding::kInt16) {
    return avx512::multiply_super(product, begin, end);
  }
  if (product.tile_rows > 2) return avx512::multiply_many(product, begin, end);
  // Float32 is portable code's: layout_of says so.
  with_kind(product.kind, [&](auto kind) {
    constexpr PanelKind kKind = decltype(kind)::kValue;
    if constexpr (kKind != PanelKind::kF32) multiply_kind<kKind>(product, begin, end);
  });
}

constexpr LinearKernels kKernels = {.layout_of = layout_of,
                                    .int8_layout_of = int8_layout_of,
                                    .most_rows = most_rows,
                                    .tile_bytes = avx512::tile_bytes,
                                    .pack_tile = avx512::pack_tile,
                                    .multiply = multiply};

}  // namespace

const LinearKernels* const kAvx512Kernels = &kKernels;

}  // namespace pagoda::cpu
