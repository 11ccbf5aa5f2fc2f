// Rows of x into tiles for the AVX-512 product (avx512_tile-inl.h). Compiled for its instruction
// set, as linear_avx512.cc is.
#include <immintrin.h>

#include "ops/linear/avx512_tile-inl.h"

namespace pagoda::cpu {
namespace {

// One row of a tile: each unit's integers at unit * tile_rows * the bytes of one.
struct TileRow {
  const float* x;  // null: zeros
  std::int64_t cols;
  int tile_rows;
  std::byte* integers;
  float* scales;
  float* sums;
  std::int32_t* integer_sums;
};

// Values [k, k + 16) of a row.
PAGODA_INLINE __m512 load_some(const TileRow& row, std::int64_t k) {
  const std::int64_t left = row.x ? row.cols - k : 0;
  if (left >= 16) return _mm512_loadu_ps(row.x + k);
  if (left <= 0) return _mm512_setzero_ps();
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << left) - 1), row.x + k);
}

// Four vectors' largest lanes, or their sums: element i is of vector i. Magnitudes compare as the
// integers that their bits are, NaN above all, so that it reaches the scale and every product.
PAGODA_INLINE __m128 largest_of_four(const __m512i (&v)[4]) {
  const __m512i a =
      _mm512_max_epu32(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
  const __m512i b =
      _mm512_max_epu32(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
  const __m512i c = _mm512_max_epu32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  const __m256i d = _mm256_max_epu32(_mm512_castsi512_si256(c), _mm512_extracti64x4_epi64(c, 1));
  return _mm_castsi128_ps(_mm_max_epu32(_mm256_castsi256_si128(d), _mm256_extracti128_si256(d, 1)));
}
PAGODA_INLINE __m128 larger(__m128 a, __m128 b) {
  return _mm_castsi128_ps(_mm_max_epu32(_mm_castps_si128(a), _mm_castps_si128(b)));
}
PAGODA_INLINE __m128i sums_of_four(const __m512i (&v)[4]) {
  const __m512i a =
      _mm512_add_epi32(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
  const __m512i b =
      _mm512_add_epi32(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
  const __m512i c = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  const __m256i d = _mm256_add_epi32(_mm512_castsi512_si256(c), _mm512_extracti64x4_epi64(c, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(d), _mm256_extracti128_si256(d, 1));
}

constexpr float kLargestFloat = 3.40282347e38f;

// Where bytes of x lie (TileView).
alignas(16) constexpr std::uint8_t kByteOrder[16] = {0, 2,  1, 3,  4,  6,  5,  7,
                                                     8, 10, 9, 11, 12, 14, 13, 15};
alignas(16) constexpr std::uint8_t kNibbleOrder[16] = {0, 4,  1, 5,  2,  6,  3,  7,
                                                       8, 12, 9, 13, 10, 14, 11, 15};

// Two units of a row: four quarters of 16 values, each under a scale of its own, of its unit's or
// of all.
PAGODA_INLINE void pack_units(const TileRow& row, std::int64_t unit,
                              const ActivationLayout& layout) {
  __m512 x[4];
  __m512i magnitudes[4];
  for_all<4>([&](auto i) PAGODA_FLATTEN {
    x[i] = load_some(row, unit * kUnit + 16 * i);
    magnitudes[i] = _mm512_castps_si512(_mm512_abs_ps(x[i]));
  });
  __m128 largest = largest_of_four(magnitudes);
  if (layout.block >= 32) largest = larger(largest, _mm_permute_ps(largest, 0xb1));
  if (layout.block == 64) largest = larger(largest, _mm_permute_ps(largest, 0x4e));
  const __m128 limit = _mm_set1_ps(static_cast<float>(layout.largest_integer));
  const __mmask8 is_positive = _mm_cmp_ps_mask(largest, _mm_setzero_ps(), _CMP_GT_OQ);
  const __m128 inverse = _mm_maskz_div_ps(is_positive, limit, largest);
  // Of no numbers no integers are made: their scale alone says so.
  const __mmask8 is_finite = _mm_cmp_ps_mask(largest, _mm_set1_ps(kLargestFloat), _CMP_LE_OQ);
  __m512i integers[4];
  for_all<4>([&](auto i) PAGODA_FLATTEN {
    const __m512 factor = _mm512_broadcastss_ps(_mm_permute_ps(inverse, 0x55 * i));
    const __mmask16 mask = is_finite >> i & 1 ? 0xffff : 0;
    integers[i] = _mm512_maskz_cvtps_epi32(mask, _mm512_mul_ps(x[i], factor));
    std::byte* of_unit = row.integers + (unit + i / 2) * row.tile_rows * unit_bytes(layout);
    if (layout.rounding == Rounding::kInt8) {
      const auto* order = layout.is_nibbles ? kNibbleOrder : kByteOrder;
      const __m128i bytes =
          _mm_shuffle_epi8(_mm512_cvtepi32_epi8(integers[i]),
                           _mm_load_si128(reinterpret_cast<const __m128i*>(order)));
      _mm_store_si128(reinterpret_cast<__m128i*>(of_unit + i % 2 * 16), bytes);
    } else {
      _mm256_store_si256(reinterpret_cast<__m256i*>(of_unit + i % 2 * 32),
                         _mm512_cvtepi32_epi16(integers[i]));
    }
  });
  __m128i sums = sums_of_four(integers);
  if (layout.block >= 32) sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0xb1));
  if (layout.block == 64) sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0x4e));
  alignas(16) float scales[4], scaled_sums[4];
  alignas(16) std::int32_t integer_sums[4];
  _mm_store_si128(reinterpret_cast<__m128i*>(integer_sums), sums);
  const __m128 scale = _mm_div_ps(largest, limit);
  _mm_store_ps(scales, scale);
  _mm_store_ps(scaled_sums, _mm_mul_ps(scale, _mm_cvtepi32_ps(sums)));
  const int step = layout.block / 16;
  const std::int64_t first = unit * 2 / step;
  for (int i = 0; i < 4; i += step) {
    row.scales[(first + i / step) * row.tile_rows] = scales[i];
    row.sums[(first + i / step) * row.tile_rows] = scaled_sums[i];
    if (layout.rounding == Rounding::kInt8) {
      row.integer_sums[(first + i / step) * row.tile_rows] = integer_sums[i];
    }
  }
}

void pack_row(const TileRow& row, const ActivationLayout& layout) {
  for (std::int64_t unit = 0; unit < padded_units(row.cols); unit += 2) {
    pack_units(row, unit, layout);
  }
}

}  // namespace

namespace avx512 {

std::int64_t tile_bytes(const ActivationLayout& layout, int tile_rows, std::int64_t cols) {
  const int arrays = layout.rounding == Rounding::kInt8 ? 3 : 2;
  return integer_tile_bytes(layout, tile_rows, cols, unit_bytes(layout), arrays);
}

void pack_tile(const ActivationLayout& layout, const TileSource& source, std::byte* tile) {
  const TileView view = view_of(tile, layout, source.tile_rows, source.cols);
  for (int r = 0; r < source.tile_rows; ++r) {
    const TileRow row = {.x = r < source.num_rows ? source.x + r * source.x_stride : nullptr,
                         .cols = source.cols,
                         .tile_rows = source.tile_rows,
                         .integers = tile + r * unit_bytes(layout),
                         .scales = const_cast<float*>(view.scales) + r,
                         .sums = const_cast<float*>(view.sums) + r,
                         .integer_sums = const_cast<std::int32_t*>(view.integer_sums) + r};
    pack_row(row, layout);
  }
}

}  // namespace avx512
}  // namespace pagoda::cpu
