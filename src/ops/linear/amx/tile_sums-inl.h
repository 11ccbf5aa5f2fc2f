// Exact sums of 256 k with AMX's tiles: 16 rows of x times the 16 columns of a panel.
//
// A tile product multiplies bytes, four k of a column in a word, and adds up in 32 bits. So the
// 16-bit integers of x are two planes of signed bytes. Weights are two or three planes; the highest
// is signed, and the others are unsigned. Products of planes that have the same power of 256 are
// added to the same sum.
//
// Tile products, stores of tiles and AVX-512 instructions share an execution port. So while some
// registers get the next sums, sums of other registers are stored and then added up. A part of this
// work follows each product of 64 k (docs/performance/log.md).
#pragma once

#include <immintrin.h>

#include "backend/cpu/tile_registers-inl.h"
#include "ops/linear/amx/group_numbers-inl.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kPlaneBytes = kPlaneDepth * kTileRows;

// Returns the registers' shapes: all have full size.
inline TileShapes shapes_of_planes() {
  TileShapes shapes;
  for (int i = 0; i < 8; ++i) shapes.set(i, kTileRows, kTileRowBytes);
  return shapes;
}

// The sums of a tile, the most significant first. Each one counts 2^8 times as much as the next.
struct TileSums {
  alignas(kLineBytes) std::int32_t planes[4][kTileRows][kPanelColumns];
};

template <int kRegister>
PAGODA_INLINE void store_tile(std::int32_t (&to)[kTileRows][kPanelColumns]) {
  static_assert(kRegister < 4);
  if constexpr (kRegister == 0) _tile_stored(0, to, kLineBytes);
  if constexpr (kRegister == 1) _tile_stored(1, to, kLineBytes);
  if constexpr (kRegister == 2) _tile_stored(2, to, kLineBytes);
  if constexpr (kRegister == 3) _tile_stored(3, to, kLineBytes);
}

// Sums of weights in two planes. The macro's arguments name the registers, because intrinsics
// require constants. Four classes follow, and are used in turn. Each begins with the register that
// the class before leaves free, and goes on with registers whose sums have been stored meanwhile.
// `load` loads 64 k of x, [2][16][64], and of weights, [2][16][16][4]; the other functions add
// their products. Loads come first: they do not overlap with products if the other hyper-thread is
// busy.
#define PAGODA_SUMS_OF_WORDS(Name, kOfHigh, kOfMiddle, kOfLow, kOther)             \
  struct Name {                                                                    \
    static constexpr int kMiddle = kOfMiddle;                                      \
    static constexpr int kLow = kOfLow;                                            \
    static constexpr int kFree = kOther;                                           \
    PAGODA_INLINE static void start_high() {                                       \
      _tile_zero(kOfHigh);                                                         \
    }                                                                              \
    PAGODA_INLINE static void start_middle() {                                     \
      _tile_zero(kOfMiddle);                                                       \
    }                                                                              \
    PAGODA_INLINE static void start_low() {                                        \
      _tile_zero(kOfLow);                                                          \
    }                                                                              \
    PAGODA_INLINE static void load(const std::byte* x, const std::byte* weights) { \
      _tile_loadd(4, x, kPlaneDepth);                                              \
      _tile_loadd(6, weights, kLineBytes);                                         \
      _tile_loadd(7, weights + kPlaneBytes, kLineBytes);                           \
      _tile_loadd(5, x + kPlaneBytes, kPlaneDepth);                                \
    }                                                                              \
    PAGODA_INLINE static void add_high() {                                         \
      _tile_dpbssd(kOfHigh, 4, 6);                                                 \
    }                                                                              \
    PAGODA_INLINE static void add_middle() {                                       \
      _tile_dpbsud(kOfMiddle, 4, 7);                                               \
      _tile_dpbssd(kOfMiddle, 5, 6);                                               \
    }                                                                              \
    PAGODA_INLINE static void add_low() {                                          \
      _tile_dpbsud(kOfLow, 5, 7);                                                  \
    }                                                                              \
  };
PAGODA_SUMS_OF_WORDS(FirstWordSums, 3, 0, 1, 2)
PAGODA_SUMS_OF_WORDS(SecondWordSums, 2, 3, 0, 1)
PAGODA_SUMS_OF_WORDS(ThirdWordSums, 1, 2, 3, 0)
PAGODA_SUMS_OF_WORDS(FourthWordSums, 0, 1, 2, 3)
#undef PAGODA_SUMS_OF_WORDS

// Two classes follow whose sums and operands fill all registers, so that no register is left free.
// The high sums are stored while products are still added to the rest, and the rest while the next
// high sums are computed. That needs fewer loads per product, which matters because loads do not
// overlap with products if the other hyper-thread is busy. Each class multiplies 64 k of x,
// [2][16][64], with a pair's panels: add_high() loads registers, and add_rest() reuses them.

// The sums of short products of two panels, [2][16][16][4] each: the high sums are those of high
// bytes times high bytes, and the rest those of high bytes times low bytes.
struct ShortSums {
  static constexpr int kPanels = 2;

  PAGODA_INLINE static void start_high() {
    _tile_zero(0);
    _tile_zero(2);
  }
  PAGODA_INLINE static void start_rest() {
    _tile_zero(1);
    _tile_zero(3);
  }
  PAGODA_INLINE static void add_high(const std::byte* x, const std::byte* const (&weights)[2]) {
    _tile_loadd(4, x, kPlaneDepth);
    _tile_loadd(5, x + kPlaneBytes, kPlaneDepth);
    _tile_loadd(6, weights[0], kLineBytes);
    _tile_loadd(7, weights[1], kLineBytes);
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(2, 4, 7);
  }
  PAGODA_INLINE static void add_rest(const std::byte* const (&weights)[2]) {
    _tile_dpbssd(1, 5, 6);
    _tile_dpbssd(3, 5, 7);
    _tile_loadd(6, weights[0] + kPlaneBytes, kLineBytes);
    _tile_loadd(7, weights[1] + kPlaneBytes, kLineBytes);
    _tile_dpbsud(1, 4, 6);
    _tile_dpbsud(3, 4, 7);
  }
  PAGODA_INLINE static void store_high(TileSums* sums) {
    store_tile<0>(sums[0].planes[0]);
    store_tile<2>(sums[1].planes[0]);
  }
  PAGODA_INLINE static void store_rest(TileSums* sums) {
    store_tile<1>(sums[0].planes[1]);
    store_tile<3>(sums[1].planes[1]);
  }
};

// The sums of weights in three planes, [3][16][16][4]: two high sums, and two for the rest.
struct ThreePlaneSums {
  static constexpr int kPanels = 1;

  PAGODA_INLINE static void start_high() {
    _tile_zero(0);
    _tile_zero(1);
  }
  PAGODA_INLINE static void start_rest() {
    _tile_zero(2);
    _tile_zero(3);
  }
  PAGODA_INLINE static void add_high(const std::byte* x, const std::byte* const (&weights)[1]) {
    _tile_loadd(4, x, kPlaneDepth);
    _tile_loadd(6, weights[0], kLineBytes);
    _tile_loadd(5, x + kPlaneBytes, kPlaneDepth);
    _tile_loadd(7, weights[0] + kPlaneBytes, kLineBytes);
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 5, 6);
    _tile_dpbsud(1, 4, 7);
  }
  PAGODA_INLINE static void add_rest(const std::byte* const (&weights)[1]) {
    _tile_loadd(6, weights[0] + 2 * kPlaneBytes, kLineBytes);
    _tile_dpbsud(2, 5, 7);
    _tile_dpbsud(2, 4, 6);
    _tile_dpbsud(3, 5, 6);
  }
  PAGODA_INLINE static void store_high(TileSums* sums) {
    store_tile<0>(sums->planes[0]);
    store_tile<1>(sums->planes[1]);
  }
  PAGODA_INLINE static void store_rest(TileSums* sums) {
    store_tile<2>(sums->planes[2]);
    store_tile<3>(sums->planes[3]);
  }
};

// Returns a row's sums over all planes, without the bits that are cut off.
template <PanelKind kKind>
PAGODA_INLINE __m512 rounded_row(const TileSums& sums, int r) {
  const auto plane = [&](int i) PAGODA_FLATTEN { return _mm512_load_si512(sums.planes[i][r]); };
  __m512i high = _mm512_add_epi32(_mm512_slli_epi32(plane(0), 8), plane(1));
  if constexpr (is_short(kKind)) return _mm512_cvtepi32_ps(high);
  const __m512i middle = plane(2);
  if constexpr (GroupFormat<kKind>::kPlanes == 2) {
    constexpr int kCutBits = GroupFormat<kKind>::kCutBits;
    high = _mm512_slli_epi32(high, 8 - kCutBits);
    return _mm512_cvtepi32_ps(_mm512_add_epi32(high, _mm512_srai_epi32(middle, kCutBits)));
  }
  high = _mm512_add_epi32(high, _mm512_srai_epi32(middle, 8));
  const __m512i of_middle = _mm512_and_si512(middle, _mm512_set1_epi32(0xff));
  return rounded(high, _mm512_add_epi32(_mm512_slli_epi32(of_middle, 8), plane(3)));
}

// Writes four k of a panel's 16 columns as a line of each plane, the highest plane first. `first`
// and `second` are pairs of k, 16 x 2 codes, which are multiplied by their factor. The bytes of a
// column's word belong to first[0], second[0], first[1], second[1].
template <int kWeightPlanes>
PAGODA_INLINE void write_line(__m512i first, __m512i second, __m512i factor, std::byte* line) {
  // The bytes of a and b alternate: low bytes from low_ones(), and high bytes from high_ones().
  const __m512i low_bytes = _mm512_set1_epi16(0xff);
  const auto low_ones = [&](__m512i a, __m512i b) PAGODA_FLATTEN {
    return _mm512_ternarylogic_epi32(low_bytes, a, _mm512_slli_epi16(b, 8), 0xca);
  };
  const auto high_ones = [&](__m512i a, __m512i b) PAGODA_FLATTEN {
    return _mm512_ternarylogic_epi32(low_bytes, _mm512_srli_epi16(a, 8), b, 0xca);
  };
  if constexpr (kWeightPlanes == 3) {
    _mm512_store_si512(
        line, low_ones(_mm512_mulhi_epi16(first, factor), _mm512_mulhi_epi16(second, factor)));
    line += kPlaneBytes;
  }
  first = _mm512_mullo_epi16(first, factor);
  second = _mm512_mullo_epi16(second, factor);
  _mm512_store_si512(line, high_ones(first, second));
  _mm512_store_si512(line + kPlaneBytes, low_ones(first, second));
}

}  // namespace
}  // namespace pagoda::cpu
