// Exact sums of a block of k by AMX's tiles: 16 rows of x times the 16 columns of a panel.
//
// A tile product takes bytes, four k of a column in a word, and adds up in 32 bits. So the 16-bit
// integers of x are two planes, high bytes with their sign and low bytes without, and weights of
// more than eight bits are too: whatever the planes, the sum is that of the whole integers.
#pragma once

#include <immintrin.h>

#include "backend/cpu/tile_registers-inl.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// The bytes that weights come in.
enum class WeightPlanes : std::uint8_t {
  kSigned,    // one plane
  kUnsigned,  // one plane
  kWords,     // two, of integers of up to 16 bits with a sign: high bytes, then low ones
};

// The bytes of a plane, kDepth k of 16 rows or columns.
template <int kDepth>
constexpr int kPlaneBytes = kDepth * kTileRows;

// Returns the registers' shapes while blocks of kDepth k are multiplied: 0 and 1 hold planes of x, 2
// and 3 of weights, 4 to 6 sums.
template <int kDepth>
TileShapes shapes_of_planes() {
  TileShapes shapes;
  for (int i = 0; i < 2; ++i) shapes.set(i, kTileRows, kDepth);
  for (int i = 2; i < 4; ++i) shapes.set(i, kDepth / 4, kTileRowBytes);
  for (int i = 4; i < 7; ++i) shapes.set(i, kTileRows, kTileRowBytes);
  return shapes;
}

// The sums of a block, plane by plane.
template <WeightPlanes kPlanes>
struct TileSums {
  static constexpr int kCount = kPlanes == WeightPlanes::kWords ? 3 : 2;
  alignas(kLineBytes) std::int32_t planes[kCount][kTileRows][kPanelColumns];

  // Returns those of the whole integers in a row: 16 columns.
  PAGODA_INLINE __m512i row(int r) const {
    const auto plane = [&](int i) PAGODA_FLATTEN { return _mm512_load_si512(planes[i][r]); };
    const __m512i sum = _mm512_add_epi32(_mm512_slli_epi32(plane(0), 8), plane(1));
    if constexpr (kCount == 2) return sum;
    return _mm512_add_epi32(_mm512_slli_epi32(sum, 8), plane(kCount - 1));
  }
};

// Multiplies planes of x, [2][16][kDepth], with those of a panel, [planes][kDepth / 4][16][4].
template <WeightPlanes kPlanes, int kDepth>
PAGODA_INLINE void multiply_tiles(const std::byte* x, const std::byte* weights,
                                  TileSums<kPlanes>& to) {
  asm volatile("" ::: "memory");  // what the tiles read has been written
  _tile_loadd(0, x, kDepth);
  _tile_loadd(1, x + kPlaneBytes<kDepth>, kDepth);
  _tile_loadd(2, weights, kLineBytes);
  _tile_zero(4);
  _tile_zero(5);
  if constexpr (kPlanes == WeightPlanes::kUnsigned) {
    _tile_dpbsud(4, 0, 2);
    _tile_dpbuud(5, 1, 2);
  } else {
    _tile_dpbssd(4, 0, 2);
    _tile_dpbusd(5, 1, 2);
  }
  if constexpr (kPlanes == WeightPlanes::kWords) {
    _tile_loadd(3, weights + kPlaneBytes<kDepth>, kLineBytes);
    _tile_zero(6);
    _tile_dpbsud(5, 0, 3);
    _tile_dpbuud(6, 1, 3);
    _tile_stored(6, to.planes[2], kLineBytes);
  }
  _tile_stored(4, to.planes[0], kLineBytes);
  _tile_stored(5, to.planes[1], kLineBytes);
}

// Writes kDepth k of weights as planes. `pair(i)` returns pair i of k as 16 x 2 integers of 16 bits.
// Two pairs make a word a column, whose bytes are k, k + 2, k + 1 and k + 3.
template <WeightPlanes kPlanes, int kPairs, class Pair>
PAGODA_INLINE void write_planes(const Pair& pair, std::byte* to, int plane_bytes) {
  const __m512i low_bytes = _mm512_set1_epi16(0xff);
  for_all<kPairs / 2>([&](auto i) PAGODA_FLATTEN {
    const __m512i even = pair(Index<2 * decltype(i)::kValue>());
    const __m512i odd = pair(Index<2 * decltype(i)::kValue + 1>());
    // mask ? even : odd
    const auto merged = [&](__m512i a, __m512i b) PAGODA_FLATTEN {
      return _mm512_ternarylogic_epi32(low_bytes, a, b, 0xca);
    };
    std::byte* line = to + i * kLineBytes;
    const __m512i low = merged(even, _mm512_slli_epi16(odd, 8));
    if constexpr (kPlanes == WeightPlanes::kWords) {
      _mm512_store_si512(line, merged(_mm512_srli_epi16(even, 8), odd));
      _mm512_store_si512(line + plane_bytes, low);
    } else {
      _mm512_store_si512(line, low);
    }
  });
}

}  // namespace
}  // namespace pagoda::cpu
