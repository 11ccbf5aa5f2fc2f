// Products on AVX-512 of K-quants and IQ4_XS. Their blocks have integer scales, and 256 k share one
// more scale. A block's scale times a code is an integer of 13 bits, exactly. The sum of 32 such
// integers times x of 15 bits fits in 32 bits. So a group of 256 is
//
//   part = sum over units of float(sum of x * scale * code)              the inner sum is exact
//   sums += scale of x * (scale * part + minimum * float(sum of minima * sums of x))
//
// Products of many rows multiply scales by codes before x, and products of few rows multiply a
// block's sum by its scale. The bits are the same.
#pragma once

#include <immintrin.h>

#include "ops/linear/avx512/few_rows_block-inl.h"
#include "ops/linear/avx512/minima-inl.h"
#include "ops/linear/avx512/tile-inl.h"
#include "ops/linear/avx512/tile_loops-inl.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// A group's numbers, for 16 columns.
template <PanelKind kKind>
struct SuperNumbers {
  static constexpr PanelFormat kFormat = panel_format(kKind);
  static constexpr int kBlocks = kSuperGroup / kFormat.block;
  static constexpr bool kHasMinimum = kFormat.has_minimum();
  static constexpr int kMinima = kHasMinimum ? kBlocks : 0;

  __m512i scales[kBlocks];                    // 32 bits
  __m512i minima[kHasMinimum ? kMinima : 1];  // in the high half times 2^kLowSumBits
  __m512 scale;
  __m512 minimum;  // the scale of minima, negated
};

template <PanelKind kKind, int kBlock>
PAGODA_INLINE SixBitNumbers<Words> integers_of_block(const std::byte* integers) {
  constexpr PanelHeader kHeader = panel_format(kKind).header;
  if constexpr (kHeader == PanelHeader::kBytes) {
    return {Words(_mm512_cvtepi8_epi32(load_bytes(integers + kBlock * kPanelColumns))), Words{}};
  } else if constexpr (kHeader == PanelHeader::kNibbles) {
    const Words both = Words(_mm512_cvtepu8_epi32(load_bytes(integers + kBlock * kPanelColumns)));
    return {both & 15, both >> 4};
  } else {
    return six_bit_numbers(load_words(integers), load_words(integers + kLineBytes),
                           load_words(integers + 2 * kLineBytes), kBlock);
  }
}

template <PanelKind kKind>
PAGODA_INLINE void read_super(const std::byte* group, SuperNumbers<kKind>& numbers) {
  using Numbers = SuperNumbers<kKind>;
  for_all<Numbers::kBlocks>([&](auto b) PAGODA_FLATTEN {
    const auto of_block = integers_of_block<kKind, decltype(b)::kValue>(group + kLineBytes);
    numbers.scales[b] = __m512i(of_block.scale);
    if constexpr (Numbers::kHasMinimum) {
      const __m512i minimum = __m512i(of_block.minimum);
      numbers.minima[b] = _mm512_or_si512(minimum, _mm512_slli_epi32(minimum, 16 + kLowSumBits));
    }
  });
  numbers.scale = load_halves(group);
  if constexpr (Numbers::kHasMinimum) {
    numbers.minimum = _mm512_mul_ps(_mm512_set1_ps(-1.0f), load_halves(group + kHalvesBytes));
  }
}

// Returns words that have the low half of `first` below, and the low half of `second` above.
PAGODA_INLINE __m512i pair_of_words(__m512i first, __m512i second) {
  const __m512i mask = _mm512_set1_epi32(0xffff);
  return _mm512_ternarylogic_epi32(mask, first, _mm512_slli_epi32(second, 16), 0xca);
}
PAGODA_INLINE __m512i both_halves(__m512i scales) {
  return pair_of_words(scales, scales);
}

// The numbers of a tile's rows for a group.
struct SuperRows {
  const std::byte* x;     // [units][rows of the tile][32]
  const std::byte* sums;  // [words of blocks' sums][rows of the tile]
  const float* scales;    // [rows]
};

template <int kTileRows>
PAGODA_INLINE SuperRows rows_of(const SuperView& tile, const ActivationLayout& layout,
                                std::int64_t g) {
  const std::int64_t group_bytes = kBlocksOfSuper * kTileRows * unit_bytes(layout, kTileRows);
  return {tile.integers + g * group_bytes, tile.sums + g * num_sum_words(layout) * kTileRows * 4,
          tile.scales + g * kTileRows};
}

// Adds a group to the products of a tile's first kRows rows. `minima(block, panel)` returns a
// panel's line for each of kMinima blocks. kMinima is 0 if the format has no minima.
template <int kMinima, int kTileRows, int kRows, int kPanels, class Minima>
PAGODA_INLINE void add_group(const SuperRows& rows, const __m512 (&scale)[kPanels],
                             const __m512 (&minimum)[kPanels], const Minima& minima,
                             __m512 (&part)[kRows][kPanels], __m512 (&sums)[kRows][kPanels]) {
  __m512i t[kRows][kPanels];
  if constexpr (kMinima > 0) multiply_minima<kMinima, kTileRows>(rows.sums, kMinima, minima, t);
  for_all<kRows>([&](auto r) PAGODA_FLATTEN {
    const __m512 of_row = _mm512_set1_ps(rows.scales[r]);
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
      __m512 sum = _mm512_mul_ps(scale[p], part[r][p]);
      if constexpr (kMinima > 0) {
        sum = _mm512_fmadd_ps(minimum[p], _mm512_cvtepi32_ps(t[r][p]), sum);
      }
      sums[r][p] = _mm512_fmadd_ps(of_row, sum, sums[r][p]);
    });
  });
}

}  // namespace
}  // namespace pagoda::cpu
