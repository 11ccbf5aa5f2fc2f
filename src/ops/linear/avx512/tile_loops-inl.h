// The steps of a product of a tile and some panels: for each block, group and span of k. Also the
// constants of the loops over these.
#pragma once

#include <immintrin.h>

#include "ops/linear/avx512/codes-inl.h"
#include "ops/linear/avx512/group_numbers-inl.h"
#include "ops/linear/avx512/tile-inl.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// Pointers to the numbers of a tile's rows for one block, and for one span.
struct RowNumbers {
  const float* scales = nullptr;
  const float* sums = nullptr;
  const std::int32_t* integer_sums = nullptr;
  const std::byte* pairs = nullptr;
};

// A tile's rows from a unit on.
struct RowsAt {
  const std::byte* x;
  RowNumbers numbers;
};
template <class Loops, int kRows>
PAGODA_INLINE RowsAt rows_at(const PanelProduct& product, std::int64_t first_row,
                             std::int64_t unit) {
  const std::byte* tile = product.tiles + first_row / kRows * product.tile_bytes;
  const std::byte* x = tile + unit * kRows * Loops::kRowBytes;
  if constexpr (Loops::kHasGroups) {
    const SuperView view = super_view_of(tile, product.layout, kRows, product.cols);
    const std::int64_t group = unit / Loops::kUnitsOfSpan;
    return {x,
            {.scales = view.scales + group * kRows,
             .sums = block_sums_of(view, product.layout, kRows, product.cols) + unit * kRows,
             .pairs = view.sums + group * Loops::kUnitsOfSpan / 2 * kRows * 4}};
  } else {
    const TileView view = view_of(tile, product.layout, kRows, product.cols);
    const std::int64_t first = unit / Loops::kUnitsOfBlock * Loops::kBlocksOfUnit * kRows;
    return {x,
            {.scales = view.scales + first,
             .sums = view.sums + first,
             .integer_sums = view.integer_sums + first}};
  }
}

template <class Loops, int kRows>
PAGODA_INLINE void next_block(RowNumbers& rows) {
  rows.sums += kRows;
  if constexpr (!Loops::kHasGroups) {
    rows.scales += kRows;
    rows.integer_sums += kRows;
  }
}
template <class Loops, int kRows>
PAGODA_INLINE void next_span(RowNumbers& rows) {
  if constexpr (Loops::kHasGroups) {
    rows.scales += kRows;
    rows.pairs += Loops::kUnitsOfSpan / 2 * kRows * 4;
  }
}
// Returns the scales of a span. REQUIRES: `rows` has been moved past the span's last block.
template <class Loops, int kRows>
PAGODA_INLINE const float* scales_of_span(const RowNumbers& rows) {
  return Loops::kHasGroups ? rows.scales : rows.scales - kRows;
}

template <int kRows, int kPanels>
PAGODA_INLINE void set_to_zero(__m512 (&sums)[kRows][kPanels]) {
  for_all<kRows>([&](auto r) PAGODA_FLATTEN {
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN { sums[r][p] = _mm512_setzero_ps(); });
  });
}
template <int kRows, int kPanels>
PAGODA_INLINE void set_to_zero(__m512i (&sums)[kRows][kPanels]) {
  for_all<kRows>([&](auto r) PAGODA_FLATTEN {
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN { sums[r][p] = _mm512_setzero_si512(); });
  });
}

// Returns a block's sum times the powers of two of a column's weights and of a row's x, by adding
// exponents. A sum of zero becomes 2^-127 of their product, which is too small to change any other
// sum.
PAGODA_INLINE __m512 raised(__m512 sum, __m512 of_column, const float* of_row) {
  const __m512i exponent = _mm512_set1_epi32(*reinterpret_cast<const std::int32_t*>(of_row));
  const __m512i raised = _mm512_add_epi32(_mm512_castps_si512(sum), _mm512_castps_si512(of_column));
  return _mm512_castsi512_ps(_mm512_add_epi32(raised, exponent));
}

// Returns the exponent of the least power of each row of a tile.
template <int kRows>
PAGODA_INLINE const float* least_powers(const PanelProduct& product, std::int64_t first_row) {
  const std::byte* tile = product.tiles + first_row / kRows * product.tile_bytes;
  return view_of(tile, product.layout, kRows, product.cols).sums;
}

// Multiplies sums from raised() by the least powers of their columns and rows.
template <int kRows, int kPanels>
PAGODA_INLINE void lower(const PanelProduct& product, const float* of_rows,
                         std::int64_t first_panel, __m512 (&sums)[kRows][kPanels]) {
  for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
    const std::byte* panel = product.panels + (first_panel + p) * product.panel_bytes;
    const __m512 of_columns = _mm512_getexp_ps(_mm512_castsi512_ps(load_line(panel)));
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      const __m512 exponent = _mm512_add_ps(of_columns, _mm512_set1_ps(of_rows[r]));
      sums[r][p] = _mm512_scalef_ps(sums[r][p], exponent);
    });
  });
}

// Adds block `at` of a group, which has the exact sums s, to `sums`. If x has spans, `sums` are
// those of a span, not yet multiplied by its scale of x.
template <class Loops, PanelKind kKind, int kRows, int kPanels>
PAGODA_INLINE void add_block(const GroupNumbers<kKind> (&numbers)[kPanels], int at,
                             const __m512i (&s)[kRows][kPanels], const RowNumbers& rows,
                             __m512 (&sums)[kRows][kPanels]) {
  for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
    const __m512 scale = numbers[p].scales[at];
    const __m512 minimum = numbers[p].minima[GroupNumbers<kKind>::kMinima > 1 ? at : 0];
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      __m512 sum = _mm512_cvtepi32_ps(s[r][p]);
      if constexpr (Loops::kHasPowers) {
        sums[r][p] = _mm512_add_ps(sums[r][p], raised(sum, scale, rows.scales + r));
        return;
      }
      if constexpr (!Loops::kHasSpans) sum = _mm512_mul_ps(sum, _mm512_set1_ps(rows.scales[r]));
      sums[r][p] = _mm512_fmadd_ps(scale, sum, sums[r][p]);
      if constexpr (Loops::kHasMinimum) {
        sums[r][p] = _mm512_fmadd_ps(minimum, _mm512_set1_ps(rows.sums[r]), sums[r][p]);
      }
    });
  });
}

// Adds the sums of a span, times its scale of x, to `spans`, and clears them for the next span.
template <int kRows, int kPanels>
PAGODA_INLINE void add_span(const float* scales, __m512 (&sums)[kRows][kPanels],
                            __m512 (&spans)[kRows][kPanels]) {
  for_all<kRows>([&](auto r) PAGODA_FLATTEN {
    const __m512 scale = _mm512_set1_ps(scales[r]);
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
      spans[r][p] = _mm512_fmadd_ps(sums[r][p], scale, spans[r][p]);
      sums[r][p] = _mm512_setzero_ps();
    });
  });
}

template <int kRows, int kPanels>
PAGODA_INLINE void store_sums(const __m512 (&sums)[kRows][kPanels], const PanelProduct& product,
                              std::int64_t first_row, std::int64_t first_panel) {
  const std::int64_t rows_left = product.num_rows - first_row;
  for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
    const std::int64_t column = (first_panel + p) * kPanelColumns;
    const std::int64_t left = product.num_columns - column;
    if (left <= 0) return;
    const __mmask16 mask =
        left >= kPanelColumns ? 0xffff : static_cast<__mmask16>((1u << left) - 1);
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      if (r >= rows_left) return;
      __m512 sum = sums[r][p];
      if (product.bias) {
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, product.bias + column));
      }
      float* to = product.out + (first_row + r) * product.out_stride + column;
      _mm512_mask_storeu_ps(to, mask, sum);
    });
  });
}

// Sets the initial integer sums of a block, before its products are added.
template <PanelKind kKind, bool kIsBytes, int kRows, int kPanels>
PAGODA_INLINE void start_block(const std::int32_t* integer_sums, __m512i (&s)[kRows][kPanels]) {
  for_all<kRows>([&](auto r) PAGODA_FLATTEN {
    __m512i start = _mm512_setzero_si512();
    if constexpr (kIsBytes && byte_offset(kKind) != 0) {
      start = _mm512_set1_epi32(-byte_offset(kKind) * integer_sums[r]);
    }
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN { s[r][p] = start; });
  });
}

// The constants of a tile's loops for a format and a rounding of x.
template <PanelKind kKind, Rounding kRounding>
struct TileLoops {
  static constexpr PanelFormat kFormat = panel_format(kKind);
  static constexpr bool kIsBytes = kRounding == Rounding::kInt8;
  static constexpr bool kHasSpans = has_spans(kRounding, kFormat.block);
  static constexpr bool kHasPowers = kFormat.header == PanelHeader::kPowers;
  // Whether minima are integers, added for 256 k at a time (avx512/minima-inl.h); else they are
  // floats, added for each block.
  static constexpr bool kHasGroups = !kIsBytes && has_float_minima(kKind);
  static constexpr bool kHasMinimum = kFormat.has_minimum() && !kHasGroups;
  static constexpr int kUnitsOfSpan = kHasGroups ? kSuperGroup / kUnit : cpu::kUnitsOfSpan;
  static constexpr int kRowBytes = kIsBytes ? kUnit : 2 * kUnit;  // of a unit of a row of x
  static constexpr int kUnitsOfBlock = kFormat.block > kUnit ? kFormat.block / kUnit : 1;
  static constexpr int kBlocksOfUnit = kFormat.block > kUnit ? 1 : kUnit / kFormat.block;
  static constexpr int kStepsOfBlock = (kIsBytes ? kUnit / 4 : kUnit / 2) / kBlocksOfUnit;
  static constexpr int kUnitsOfGroup = kFormat.group / kUnit;

  // Adds the exact products of step kStep of a unit. Its planes begin at `low` and `high`.
  template <int kStep, int kRows, int kPanels>
  PAGODA_INLINE static void add_step(const PairReader<kKind>& reader, const std::byte* low,
                                     const std::byte* high, std::int64_t panel_bytes,
                                     const std::byte* x, __m512i (&s)[kRows][kPanels]) {
    __m512i w[kPanels];
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
      const std::int64_t at = p * panel_bytes;
      if constexpr (kIsBytes) {
        w[p] = code_bytes<kKind, kStep>(low + at, high + at);
      } else {
        w[p] = reader.template pair<kStep>(low + at, high + at);
      }
    });
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      const __m512i word = broadcast_word(x + r * kRowBytes + 4 * kStep);
      for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
        s[r][p] = kIsBytes ? _mm512_dpbusd_epi32(s[r][p], w[p], word)
                           : _mm512_dpwssd_epi32(s[r][p], w[p], word);
      });
    });
  }
};

}  // namespace
}  // namespace pagoda::cpu
