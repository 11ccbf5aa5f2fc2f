// The cpu product on AVX-512 with VNNI and VBMI.
//
// Weights become 16-bit integers in registers; codes of up to six bits are looked up in a table
// (vpermw, vpermi2w). They are multiplied with x as 16-bit integers, and a block's sum is exact.
// The rounding of x costs 2e-5, where bfloat16 would cost 1.3e-3 at the same speed. A line of a
// plane is loaded once and shifted, and codes are never written to memory. In measurements,
// unpacking into a buffer was never faster, even for 512 rows.
//
// This file is compiled for one instruction set, so it uses only its own functions: an inline
// function of a shared header could be linked into code that runs on every machine.
#include <immintrin.h>

#include "ops/linear/avx512/few_rows_block-inl.h"
#include "ops/linear/avx512/minima-inl.h"
#include "ops/linear/avx512/tile-inl.h"
#include "ops/linear/avx512/tile_loops-inl.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// With six rows, sums and blocks' sums stay in registers. Measured on a Zen 5 with 2 panels: 85 %
// of the dot products' peak; with twelve rows, and sums in memory, 65 to 75 %.
constexpr int kMostRows = 6;

// Multiplies a tile of few rows with a panel. Few rows wait for memory, so panels are read one at a
// time, as one ascending stream.
template <PanelKind kKind, Rounding kRounding, int kRows>
class FewRowsTile {
 public:
  using Loops = TileLoops<kKind, kRounding>;
  static constexpr int kUnitBytes = Loops::kFormat.group_bytes() / Loops::kUnitsOfGroup;
  static constexpr bool kHasPlanes = meets_planes(kKind);

  // The lines of a block, or of a unit if blocks are shorter.
  static constexpr int kLines = (kUnitBytes * Loops::kUnitsOfBlock + kLineBytes - 1) / kLineBytes;

  // Not inlined: it takes all registers.
  __attribute__((noinline)) static void multiply(const PanelProduct& product,
                                                 std::int64_t first_row, std::int64_t first_panel) {
    const PairReader<kKind> reader;
    const std::byte* panel = product.panels + first_panel * product.panel_bytes;
    const std::byte* group = panel + product.header_area;
    auto [x, rows] = rows_at<Loops, kRows>(product, first_row, 0);
    __m512 minima[1][kBlocksOfSuper];
    set_to_zero(minima);
    // `sums` are the products. If x has spans, `sums` are those of one span, and `spans` those of
    // the spans before.
    __m512 sums[kRows][1], spans[kRows][1];
    set_to_zero(sums);
    set_to_zero(spans);
    const std::int64_t num_groups = Loops::kFormat.num_groups(product.cols);
    std::int64_t units_done = 0;
    for (std::int64_t g = 0; g < num_groups; ++g, group += Loops::kFormat.group_bytes()) {
      GroupNumbers<kKind> numbers[1];
      read_panels(product, panel, group, g, numbers);
      for (int unit = 0; unit < Loops::kUnitsOfGroup; unit += Loops::kUnitsOfBlock) {
        for_all<Loops::kBlocksOfUnit>([&](auto block) PAGODA_FLATTEN {
          __m512i s[kRows][1];
          // The odd units of planes lie behind the even ones of the first row.
          const bool is_odd = kHasPlanes && units_done % 2 == 1;
          sum_block<decltype(block)::kValue>(reader, {group, unit, product.prefetch},
                                             is_odd ? x - kRows * Loops::kRowBytes + kUnit : x,
                                             rows, s);
          const int at = unit / Loops::kUnitsOfBlock * Loops::kBlocksOfUnit + block;
          add_block<Loops>(numbers, at, s, rows, sums);
          next_block<Loops, kRows>(rows);
        });
        if constexpr (Loops::kHasGroups) {
          minima[0][units_done % Loops::kUnitsOfSpan] = minima_of(numbers[0]);
        }
        x += Loops::kUnitsOfBlock * kRows * Loops::kRowBytes;
        units_done += Loops::kUnitsOfBlock;
        const bool is_last = units_done == num_groups * Loops::kUnitsOfGroup;
        if (Loops::kHasSpans && (units_done % Loops::kUnitsOfSpan == 0 || is_last)) {
          if constexpr (Loops::kHasGroups)
            add_float_minima(rows.pairs, (units_done - 1) % Loops::kUnitsOfSpan + 1, minima, sums);
          add_span(scales_of_span<Loops, kRows>(rows), sums, spans);
          next_span<Loops, kRows>(rows);
        }
      }
    }
    if constexpr (Loops::kHasPowers) {
      lower(product, least_powers<kRows>(product, first_row), first_panel, sums);
    }
    store_sums<kRows, 1>(Loops::kHasSpans ? spans : sums, product, first_row, first_panel);
  }

 private:
  // Adds the products of a span's minima, and clears the minima.
  PAGODA_INLINE static void add_float_minima(const std::byte* pairs, std::int64_t num_units,
                                             __m512 (&minima)[1][kBlocksOfSuper],
                                             __m512 (&sums)[kRows][1]) {
    PackedMinima packed;
    pack_minima(minima[0], packed);
    add_minima<kRows>(
        pairs, num_units, [&](auto) PAGODA_FLATTEN -> const PackedMinima& { return packed; }, sums);
    set_to_zero(minima);
  }

  // Computes the exact sums over block kBlock of `units`.
  template <int kBlock>
  PAGODA_INLINE static void sum_block(const PairReader<kKind>& reader, const UnitsAt& units,
                                      const std::byte* x, const RowNumbers& rows,
                                      __m512i (&s)[kRows][1]) {
    if constexpr (Loops::kIsBytes) {
      start_block<kKind, Loops::kIsBytes>(rows.integer_sums, s);
      for_steps<kBlock>(units, [&](auto unit, auto step, auto* low, auto* high) PAGODA_FLATTEN {
        Loops::template add_step<decltype(step)::kValue>(reader, low, high, 0,
                                                         x + unit * kRows * Loops::kRowBytes, s);
      });
    } else {
      if constexpr (kHasPlanes) return sum_levels(units, x, rows, s);
      FewRowsBlock<kKind, kRows> sums(rows.sums);
      if constexpr (Loops::kFormat.low_bits == 16) {
        add_words(reader, units, x, sums);
      } else {
        for_steps<kBlock>(units, [&](auto unit, auto step, auto* low, auto* high) PAGODA_FLATTEN {
          sums.template add<decltype(step)::kValue>(
              reader, low, high, x + unit * kRows * Loops::kRowBytes, Loops::kRowBytes);
        });
      }
      for_all<kRows>([&](auto r) PAGODA_FLATTEN { s[r][0] = sums.sum(r); });
    }
  }

  // Computes the exact sums over a unit whose codes are levels. A level is raised to an unsigned byte
  // and multiplied with the high and the low bytes of x.
  PAGODA_INLINE static void sum_levels(const UnitsAt& units, const std::byte* x,
                                       const RowNumbers& rows, __m512i (&s)[kRows][1]) {
    constexpr int kPlaneBytes = kPlaneDepth * kRows;
    __m512i highs[kRows], lows[kRows];
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      const __m512 raised_by = _mm512_set1_ps(-static_cast<float>(byte_offset(kKind)));
      highs[r] = _mm512_setzero_si512();
      lows[r] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_set1_ps(rows.sums[r]), raised_by));
    });
    for_steps<0>(units, [&](auto, auto step, auto* low, auto* high) PAGODA_FLATTEN {
      if constexpr (decltype(step)::kValue % 2 == 1) return;
      constexpr int kWord = decltype(step)::kValue / 2;
      const __m512i codes = code_bytes<kKind, kWord>(low, high);
      for_all<kRows>([&](auto r) PAGODA_FLATTEN {
        const std::byte* at = x + r * kPlaneDepth + 4 * kWord;
        highs[r] = _mm512_dpbusd_epi32(highs[r], codes, broadcast_word(at));
        lows[r] = _mm512_dpbusd_epi32(lows[r], codes, broadcast_word(at + kPlaneBytes));
      });
    });
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      s[r][0] = _mm512_add_epi32(_mm512_slli_epi32(highs[r], 8), lows[r]);
    });
  }

  // Adds a block of sixteen-bit codes, one line per step. The loop is not unrolled fully: with
  // separate instructions for each line, weights were read a tenth slower. Perhaps the hardware
  // predicts streams by the address of the load instruction.
  PAGODA_INLINE static void add_words(const PairReader<kKind>& reader, const UnitsAt& units,
                                      const std::byte* x, FewRowsBlock<kKind, kRows>& sums) {
    constexpr int kStepsAtOnce = 8;
    static_assert(Loops::kStepsOfBlock % kStepsAtOnce == 0 && Loops::kBlocksOfUnit == 1);
    const std::byte* line = units.group + Loops::kFormat.low_plane() +
                            units.first * Loops::kFormat.low_bits * kLineBytes;
    prefetch_ahead<kKind, 0, 1>(units.group, units.prefetch);
    for (int unit = 0; unit < Loops::kUnitsOfBlock; ++unit, x += kRows * Loops::kRowBytes) {
      const std::byte* pairs = x;
#pragma GCC unroll 1
      for (int step = 0; step < Loops::kStepsOfBlock; step += kStepsAtOnce) {
        for_all<kStepsAtOnce>([&](auto at) PAGODA_FLATTEN {
          prefetch_ahead<kKind, at, at + 1>(line, units.prefetch);
          sums.template add<decltype(at)::kValue>(reader, line, line, pairs, Loops::kRowBytes);
        });
        line += kStepsAtOnce * kLineBytes;
        pairs += kStepsAtOnce * 2 * sizeof(std::int16_t);
      }
    }
  }

  // Calls visit(unit, step, low, high) for the steps of block kBlock of `units`. `unit` is counted
  // from the block's first unit, and its planes begin at `low` and `high`.
  template <int kBlock, class Visit>
  PAGODA_INLINE static void for_steps(const UnitsAt& units, const Visit& visit) {
    constexpr int kStepsAtOnce = Loops::kStepsOfBlock * Loops::kUnitsOfBlock * Loops::kBlocksOfUnit;
    for_all<Loops::kUnitsOfBlock>([&](auto unit) PAGODA_FLATTEN {
      const int at = units.first + unit;
      const std::byte* low =
          units.group + Loops::kFormat.low_plane() + at * Loops::kFormat.low_bits * kLineBytes;
      const std::byte* high =
          units.group + Loops::kFormat.high_plane() + at * Loops::kFormat.high_bits * kLineBytes;
      for_all<kBlock * Loops::kStepsOfBlock + Loops::kStepsOfBlock, kBlock * Loops::kStepsOfBlock>(
          [&](auto step) PAGODA_FLATTEN {
            // Lines are prefetched one by one: a burst would delay the loads after it.
            constexpr int kUnitOfBlock = decltype(unit)::kValue, kStep = decltype(step)::kValue;
            constexpr int kAt = kUnitOfBlock * Loops::kStepsOfBlock + kStep;
            prefetch_ahead<kKind, kLines * kAt / kStepsAtOnce, kLines*(kAt + 1) / kStepsAtOnce>(
                units.group + units.first * kUnitBytes, units.prefetch);
            visit(unit, step, low, high);
          });
    });
  }
};

template <PanelKind kKind, Rounding kRounding, int kRows>
void multiply_tiles(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  for (std::int64_t panel = begin; panel < end; ++panel) {
    for (std::int64_t row = 0; row < product.num_rows; row += kRows) {
      FewRowsTile<kKind, kRounding, kRows>::multiply(product, row, panel);
    }
  }
}

template <PanelKind kKind, Rounding kRounding>
void multiply_rounded(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  switch (product.tile_rows) {
    case 1:
      return multiply_tiles<kKind, kRounding, 1>(product, begin, end);
    case 2:
      return multiply_tiles<kKind, kRounding, 2>(product, begin, end);
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
    layout.has_exact_sums = has_integer_minima(kind);
    if (!layout.has_exact_sums) layout.largest_integer = kSuperLargest;
    layout.span = kSuperGroup;
  }
  if (meets_planes(kind)) {
    layout.largest_integer = kPlanesLargest;
    layout.is_nibbles = true;
    layout.least_plane_rows = 1;
    layout.most_plane_rows = 2;
  }
  if (kind == PanelKind::kInt14) {
    layout.largest_integer = kPowersLargest;
    layout.takes_whole_rows = true;
  }
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

int most_rows(const ActivationLayout&, std::int64_t) {
  return kMostRows;
}

void multiply(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  if (is_super(product.kind) && product.layout.rounding == Rounding::kInt16) {
    return avx512::multiply_super(product, begin, end);
  }
  if (product.tile_rows > 2) return avx512::multiply_many(product, begin, end);
  // layout_of() does not take float32, which is left to the portable kernels.
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
