// Multiplies minima with sums of x as integers, for the AVX-512 products. Float products for each
// block would take a twentieth of the time of the units that multiply x. Dot products of words with
// two 16-bit halves are used instead (avx512/tile-inl.h describes the words of x).
#pragma once

#include <immintrin.h>

#include "ops/linear/avx512/few_rows_block-inl.h"
#include "ops/linear/avx512/tile-inl.h"
#include "ops/linear/avx512/tile_loops-inl.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// Computes t = sum over the first `num_words` words of minima * sums of x. `minima(word, panel)`
// returns a panel's line. `sums` are the rows' words [words][kTileRows]; the first kRows rows are
// used.
template <int kWords, int kTileRows, int kRows, int kPanels, class Minima>
PAGODA_INLINE void multiply_minima(const std::byte* sums, int num_words, const Minima& minima,
                                   __m512i (&t)[kRows][kPanels]) {
  set_to_zero(t);
  for_all<kWords>([&](auto i) PAGODA_FLATTEN {
    if (i >= num_words) return;
    __m512i m[kPanels];
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN { m[p] = minima(i, p); });
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      const __m512i word = broadcast_word(sums + (i * kTileRows + r) * 4);
      for_all<kPanels>([&](auto p)
                           PAGODA_FLATTEN { t[r][p] = _mm512_dpwssd_epi32(t[r][p], m[p], word); });
    });
  });
}

// The minima of 256 k of a panel as integers of 13 bits times a power of two. With sums of 15 bits,
// the sum of eight products fits in 32 bits.
constexpr int kMinimumBits = 13;
struct PackedMinima {
  __m512i pairs[kBlocksOfSuper / 2];
  __m512 scale;  // includes the number that the sums of x were divided by
};

PAGODA_INLINE void pack_minima(const __m512 (&minima)[kBlocksOfSuper], PackedMinima& to) {
  __m512 largest = _mm512_abs_ps(minima[0]);
  for_all<kBlocksOfSuper - 1>([&](auto i) PAGODA_FLATTEN {
    largest = _mm512_max_ps(largest, _mm512_abs_ps(minima[i + 1]));
  });
  // The exponents with their bias. The least one is such that the powers below are normal numbers;
  // smaller minima lose bits.
  const __m512i exponent = _mm512_max_epi32(_mm512_srli_epi32(_mm512_castps_si512(largest), 23),
                                            _mm512_set1_epi32(kMinimumBits + 3));
  const auto power = [](__m512i stored) PAGODA_FLATTEN {
    return _mm512_castsi512_ps(_mm512_slli_epi32(stored, 23));
  };
  const __m512 factor =
      power(_mm512_sub_epi32(_mm512_set1_epi32(254 + kMinimumBits - 1), exponent));
  const auto integers = [&](int i) PAGODA_FLATTEN {
    return _mm512_cvtps_epi32(_mm512_mul_ps(minima[i], factor));
  };
  for_all<kBlocksOfSuper / 2>([&](auto i) PAGODA_FLATTEN {
    to.pairs[i] = _mm512_or_si512(_mm512_and_si512(integers(2 * i), _mm512_set1_epi32(0xffff)),
                                  _mm512_slli_epi32(integers(2 * i + 1), 16));
  });
  constexpr int kHalfBlockBits = 4;
  const __m512 scale =
      power(_mm512_sub_epi32(exponent, _mm512_set1_epi32(kMinimumBits - 1 - kHalfBlockBits)));
  // The scale is NaN if a minimum is NaN or infinite.
  to.scale = _mm512_fmadd_ps(largest, _mm512_setzero_ps(), scale);
}

// Returns the minimum of a block after kMiddle is subtracted from its codes.
template <PanelKind kKind, int kMiddle = middle_code(kKind)>
PAGODA_INLINE __m512 minima_of(const GroupNumbers<kKind>& numbers) {
  const __m512 middle = _mm512_set1_ps(static_cast<float>(kMiddle));
  return _mm512_fmadd_ps(middle, numbers.scales[0], numbers.minima[0]);
}

// Adds the products of the minima of a span's first `num_units` units to `sums`, before these are
// multiplied by the scale of x. `packed(panel)` returns a panel's minima; rows are a tile's first
// ones.
template <int kTileRows, int kRows, int kPanels, class Packed>
PAGODA_INLINE void add_minima(const std::byte* row_sums, std::int64_t num_units,
                              const Packed& packed, __m512 (&sums)[kRows][kPanels]) {
  __m512i t[kRows][kPanels];
  const auto num_pairs = static_cast<int>((num_units + 1) / 2);
  multiply_minima<kBlocksOfSuper / 2, kTileRows>(
      row_sums, num_pairs, [&](auto i, auto p) PAGODA_FLATTEN { return packed(p).pairs[i]; }, t);
  for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
    const __m512 scale = packed(p).scale;
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      sums[r][p] = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(t[r][p]), sums[r][p]);
    });
  });
}

}  // namespace
}  // namespace pagoda::cpu
