// Rounds rows of x into tiles for the AVX-512 product (avx512/tile-inl.h). The file is compiled for
// one instruction set, like linear_avx512.cc.
#include <immintrin.h>

#include "ops/linear/avx512/tile-inl.h"

namespace pagoda::cpu {
namespace {

// One row of a tile. The integers of unit u begin at u * tile_rows * unit_bytes.
struct TileRow {
  const float* x = nullptr;  // null: zeros
  std::int64_t cols = 0;
  int tile_rows = 0;
  bool are_planes = false;
  bool are_split = false;
  bool are_nibbles = false;     // whether bytes are in the order for codes of four bits
  int code_offset = 0;          // as in ActivationLayout
  std::int64_t unit_bytes = 0;  // of a unit's integers
  std::byte* integers = nullptr;
  float* scales = nullptr;
  float* sums = nullptr;
  std::int32_t* integer_sums = nullptr;  // in super tiles, the words of sums
  bool has_exact_sums = false;
  std::int32_t* offsets = nullptr;  // null if the tile has none
};

// Blocks are rounded sixteen at a time, so that one number of each fills a register.
constexpr int kBlocksAtOnce = 16;

// One vector for each block.
struct BlockVectors {
  __m512i of[kBlocksAtOnce];
};

// Loads values [k, k + 16) of a row.
template <bool kIsWhole>
PAGODA_INLINE __m512 load_some(const TileRow& row, std::int64_t k) {
  if constexpr (kIsWhole) return _mm512_loadu_ps(row.x + k);
  const std::int64_t left = row.x ? row.cols - k : 0;
  if (left >= 16) return _mm512_loadu_ps(row.x + k);
  if (left <= 0) return _mm512_setzero_ps();
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << left) - 1), row.x + k);
}

// Folds the lanes of each vector into one lane. Lane i of the result is vector i's.
template <class Fold>
PAGODA_INLINE __m512i folded(const BlockVectors& v, const Fold& fold) {
  __m512i quads[4];
  for_all<4>([&](auto i) PAGODA_FLATTEN {
    const __m512i* of = v.of + 4 * i;
    const __m512i a =
        fold(_mm512_unpacklo_epi32(of[0], of[1]), _mm512_unpackhi_epi32(of[0], of[1]));
    const __m512i b =
        fold(_mm512_unpacklo_epi32(of[2], of[3]), _mm512_unpackhi_epi32(of[2], of[3]));
    quads[i] = fold(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  });
  const auto lanes = [&](__m512i a, __m512i b) PAGODA_FLATTEN {
    return fold(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
  };
  return lanes(lanes(quads[0], quads[1]), lanes(quads[2], quads[3]));
}

// Returns for each block the largest magnitude of its span.
template <int kBlocksOfSpan>
PAGODA_INLINE __m512i largest_of_span(__m512i v) {
  static_assert(kBlocksOfSpan == 4 || kBlocksOfSpan == 8 || kBlocksOfSpan == 16);
  v = _mm512_max_epu32(v, _mm512_shuffle_epi32(v, _MM_PERM_CDAB));
  v = _mm512_max_epu32(v, _mm512_shuffle_epi32(v, _MM_PERM_BADC));
  if constexpr (kBlocksOfSpan >= 8) v = _mm512_max_epu32(v, _mm512_shuffle_i64x2(v, v, 0xb1));
  if constexpr (kBlocksOfSpan == 16) v = _mm512_max_epu32(v, _mm512_shuffle_i64x2(v, v, 0x4e));
  return v;
}

constexpr float kLargestFloat = 3.40282347e38f;

// Returns the k of the i-th byte, in the order that codes need.
constexpr int k_of_byte(int i, bool is_nibbles) {
  constexpr int kBytes[8] = {0, 2, 1, 3, 4, 6, 5, 7};
  constexpr int kNibbles[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  return i / 8 * 8 + (is_nibbles ? kNibbles : kBytes)[i % 8];
}

struct ByteOrder {
  alignas(kLineBytes) std::uint8_t from[64];
};
// Returns the permutation that brings 64 bytes into a tile's order. Packing with saturation has
// left them as [lane][vector][4].
constexpr ByteOrder byte_order(bool is_nibbles) {
  ByteOrder order = {};
  for (int i = 0; i < 64; ++i) {
    const int k = k_of_byte(i, is_nibbles);
    order.from[i] = static_cast<std::uint8_t>(k % 16 / 4 * 16 + k / 16 * 4 + k % 4);
  }
  return order;
}
constexpr ByteOrder kByteOrder = byte_order(false), kNibbleOrder = byte_order(true);

// Returns the order of a unit's bytes in planes: high bytes of its 16-bit integers, then low ones.
constexpr ByteOrder plane_order(bool is_nibbles) {
  ByteOrder order = {};
  for (int i = 0; i < kUnit; ++i) {
    const int k = k_of_byte(i, is_nibbles);
    order.from[i] = static_cast<std::uint8_t>(2 * k + 1);
    order.from[kUnit + i] = static_cast<std::uint8_t>(2 * k);
  }
  return order;
}
constexpr ByteOrder kPlaneOrder = plane_order(false), kNibblePlaneOrder = plane_order(true);

// Stores the offsets that cancel the codes' offset. `planes` has two half units of high bytes, then
// two of low bytes, each in one lane of 128 bits. Each lane gets one sum.
PAGODA_INLINE void store_offsets(__m512i planes, int code_offset, std::int32_t* to) {
  const __m512i offset = _mm512_set1_epi8(static_cast<char>(code_offset));
  __m512i sums = _mm512_dpbusd_epi32(_mm512_setzero_si512(), offset, planes);
  sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_CDAB));
  sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_BADC));
  alignas(kLineBytes) std::int32_t of_lanes[16];
  _mm512_store_si512(of_lanes, sums);
  for (int i = 0; i < kOffsetsOfUnit; ++i) to[i] = -of_lanes[4 * i];
}

// Stores a unit's 16-bit integers in the planes of its block; row.integers is the row's first byte.
// The low byte is signed, so the high byte is rounded to nearest, not down.
PAGODA_INLINE void store_planes(const TileRow& row, std::int64_t unit, __m512i integers) {
  constexpr int kUnits = kPlaneDepth / kUnit;
  const std::int64_t plane_bytes = std::int64_t{kPlaneDepth} * row.tile_rows;
  std::byte* high = row.integers + unit / kUnits * 2 * plane_bytes + unit % kUnits * kUnit;
  const __m512i low_bytes = _mm512_set1_epi16(0xff);
  const __m512i rounded = _mm512_add_epi16(integers, _mm512_set1_epi16(128));
  integers = _mm512_ternarylogic_epi32(low_bytes, integers, rounded, 0xca);  // low_bytes ? a : b
  const auto* order = row.are_nibbles ? kNibblePlaneOrder.from : kPlaneOrder.from;
  const __m512i planes = _mm512_permutexvar_epi8(_mm512_load_si512(order), integers);
  if (row.offsets) {
    store_offsets(planes, row.code_offset, row.offsets + unit * row.tile_rows * kOffsetsOfUnit);
  }
  _mm256_store_si256(reinterpret_cast<__m256i*>(high), _mm512_castsi512_si256(planes));
  _mm256_store_si256(reinterpret_cast<__m256i*>(high + plane_bytes),
                     _mm512_extracti64x4_epi64(planes, 1));
}

// Stores a unit's 16-bit integers as words: first their high bytes, then their low bytes.
PAGODA_INLINE void store_split(__m512i integers, std::byte* to) {
  const __m512i rounded = _mm512_add_epi16(integers, _mm512_set1_epi16(128));
  _mm512_store_si512(to, _mm512_srai_epi16(rounded, 8));
  _mm512_store_si512(to + 2 * kUnit, _mm512_srai_epi16(_mm512_slli_epi16(integers, 8), 8));
}

// Stores the integers of two units in the layout that the product reads.
template <Rounding kRounding>
PAGODA_INLINE void store_units(const TileRow& row, std::int64_t unit, const __m512i (&v)[4]) {
  std::byte* first = row.integers + unit * row.tile_rows * row.unit_bytes;
  std::byte* second = first + row.tile_rows * row.unit_bytes;
  const __m512i a = _mm512_packs_epi32(v[0], v[1]), b = _mm512_packs_epi32(v[2], v[3]);
  if constexpr (kRounding == Rounding::kInt8) {
    const auto* order = row.are_nibbles ? kNibbleOrder.from : kByteOrder.from;
    const __m512i bytes =
        _mm512_permutexvar_epi8(_mm512_load_si512(order), _mm512_packs_epi16(a, b));
    _mm256_store_si256(reinterpret_cast<__m256i*>(first), _mm512_castsi512_si256(bytes));
    _mm256_store_si256(reinterpret_cast<__m256i*>(second), _mm512_extracti64x4_epi64(bytes, 1));
  } else {
    const __m512i order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
    const __m512i of_first = _mm512_permutexvar_epi64(order, a);
    const __m512i of_second = _mm512_permutexvar_epi64(order, b);
    if (row.are_planes) {
      store_planes(row, unit, of_first);
      store_planes(row, unit + 1, of_second);
    } else if (row.are_split) {
      store_split(of_first, first);
      store_split(of_second, second);
    } else {
      _mm512_store_si512(first, of_first);
      _mm512_store_si512(second, of_second);
    }
  }
}

// How a row is rounded: the k of a block, whose integers are summed, and of a span, which has one
// scale.
template <Rounding kRoundingOf, int kBlockOf, int kSpanOf>
struct Scheme {
  static constexpr Rounding kRounding = kRoundingOf;
  static constexpr int kBlock = kBlockOf;
  static constexpr int kSpan = kSpanOf;
  static constexpr bool kIsSuper = kSpanOf == kSuperGroup;
};

// Each block's scale. Largest magnitudes are compared as integers, by their bits, in which NaN is
// above all numbers. So a NaN reaches the scale and every product.
struct BlockScales {
  __m512 scales;
  alignas(kLineBytes) float factors[kBlocksAtOnce];
  bool are_numbers;  // whether all x are finite
};

template <class Scheme, bool kIsWhole>
PAGODA_INLINE void find_scales(const TileRow& row, std::int64_t first, int count, float limit,
                               BlockScales& to) {
  BlockVectors v;
  for (int b = count; b < kBlocksAtOnce; ++b) v.of[b] = _mm512_setzero_si512();
  for (int b = 0; b < count; ++b) {
    __m512i largest = _mm512_setzero_si512();
    for_all<Scheme::kBlock / 16>([&](auto i) PAGODA_FLATTEN {
      const __m512 x = load_some<kIsWhole>(row, (first + b) * Scheme::kBlock + 16 * i);
      largest = _mm512_max_epu32(largest, _mm512_castps_si512(_mm512_abs_ps(x)));
    });
    v.of[b] = largest;
  }
  __m512i of_blocks =
      folded(v, [](__m512i a, __m512i b) PAGODA_FLATTEN { return _mm512_max_epu32(a, b); });
  if constexpr (Scheme::kSpan > Scheme::kBlock) {
    of_blocks = largest_of_span<Scheme::kSpan / Scheme::kBlock>(of_blocks);
  }
  const __m512 largest = _mm512_castsi512_ps(of_blocks);
  const __m512 most = _mm512_set1_ps(limit);
  // A block with NaN or infinity gets a factor of zero, and its integers are zero. Only its scale
  // has the NaN or infinity.
  const __mmask16 is_positive = _mm512_cmp_ps_mask(largest, _mm512_setzero_ps(), _CMP_GT_OQ);
  const __mmask16 is_finite =
      _mm512_cmp_ps_mask(largest, _mm512_set1_ps(kLargestFloat), _CMP_LE_OQ);
  _mm512_store_ps(to.factors, _mm512_maskz_div_ps(is_positive & is_finite, most, largest));
  to.scales = _mm512_div_ps(largest, most);
  to.are_numbers = is_finite == 0xffff;
}

// Computes the integers of `count` blocks. v gets the sums of the lanes of each block.
template <class Scheme, bool kIsWhole, bool kAreNumbers>
PAGODA_INLINE void round_blocks(const TileRow& row, std::int64_t first, int count,
                                const BlockScales& scales, BlockVectors& v) {
  constexpr int kVectors = Scheme::kBlock / 16;  // of a block
  for (int pair = 0; pair < count * Scheme::kBlock / (2 * kUnit); ++pair) {
    __m512i integers[4];
    for_all<4>([&](auto i) PAGODA_FLATTEN {
      const int b = (4 * pair + i) / kVectors;
      const __m512 x = load_some<kIsWhole>(row, first * Scheme::kBlock + 64 * pair + 16 * i);
      const __m512 scaled = _mm512_mul_ps(x, _mm512_set1_ps(scales.factors[b]));
      if constexpr (kAreNumbers) {
        integers[i] = _mm512_cvtps_epi32(scaled);
      } else {
        const __mmask16 is_number = _mm512_cmp_ps_mask(scaled, scaled, _CMP_ORD_Q);
        integers[i] = _mm512_maskz_cvtps_epi32(is_number, scaled);
      }
      v.of[b] = i % kVectors == 0 ? integers[i] : _mm512_add_epi32(v.of[b], integers[i]);
    });
    store_units<Scheme::kRounding>(row, first * Scheme::kBlock / kUnit + 2 * pair, integers);
  }
}

template <class Scheme>
PAGODA_INLINE void store_numbers(const TileRow& row, std::int64_t first, int count, __m512 scale,
                                 __m512i sum) {
  alignas(kLineBytes) float scales[kBlocksAtOnce], sums[kBlocksAtOnce];
  alignas(kLineBytes) std::int32_t integer_sums[kBlocksAtOnce];
  _mm512_store_ps(scales, scale);
  const __m512 float_sum = _mm512_cvtepi32_ps(sum);
  _mm512_store_ps(sums,
                  Scheme::kSpan > Scheme::kBlock ? float_sum : _mm512_mul_ps(scale, float_sum));
  _mm512_store_si512(integer_sums, sum);
  for (int b = 0; b < count; ++b) {
    const std::int64_t at = (first + b) * row.tile_rows;
    row.scales[at] = scales[b];
    row.sums[at] = sums[b];
    if constexpr (Scheme::kRounding == Rounding::kInt8) row.integer_sums[at] = integer_sums[b];
  }
}

// Stores a word for each block, with its exact sum.
PAGODA_INLINE void store_exact_words(__m512i sum, std::int32_t* words) {
  const __m512i low = _mm512_and_si512(sum, _mm512_set1_epi32((1 << kLowSumBits) - 1));
  const __m512i high = _mm512_slli_epi32(_mm512_srai_epi32(sum, kLowSumBits), 16);
  _mm512_store_si512(words, _mm512_or_si512(low, high));
}

// Stores a word for each two blocks, with their rounded sums.
template <class Scheme>
PAGODA_INLINE void store_words_of_two(__m512i sum, std::int32_t* words) {
  constexpr int kHalf = Scheme::kBlock / 2;
  static_assert(kHalf == 8 || kHalf == 16);
  const __m512i halved =
      _mm512_srai_epi32(_mm512_add_epi32(sum, _mm512_set1_epi32(kHalf / 2)), kHalf == 8 ? 3 : 4);
  _mm256_store_si256(reinterpret_cast<__m256i*>(words), _mm512_cvtepi32_epi16(halved));
}

template <class Scheme>
PAGODA_INLINE void store_super_numbers(const TileRow& row, std::int64_t first, int count,
                                       __m512 scale, __m512i sum) {
  constexpr int kBlocksOfSpan = Scheme::kSpan / Scheme::kBlock;
  alignas(kLineBytes) float scales[kBlocksAtOnce];
  alignas(kLineBytes) std::int32_t words[kBlocksAtOnce];
  _mm512_store_ps(scales, scale);
  if (row.has_exact_sums) {
    store_exact_words(sum, words);
  } else {
    store_words_of_two<Scheme>(sum, words);
  }
  const int blocks_of_word = row.has_exact_sums ? 1 : 2;
  for (int span = 0; span < count; span += kBlocksOfSpan) {
    row.scales[(first + span) / kBlocksOfSpan * row.tile_rows] = scales[span];
    for (int b = span; b < span + kBlocksOfSpan; b += blocks_of_word) {
      row.integer_sums[(first + b) / blocks_of_word * row.tile_rows] = words[b / blocks_of_word];
    }
  }
  if constexpr (Scheme::kBlock == kUnit) {
    alignas(kLineBytes) float sums[kBlocksAtOnce];
    _mm512_store_ps(sums, _mm512_cvtepi32_ps(sum));
    for (int b = 0; b < count; ++b) row.sums[(first + b) * row.tile_rows] = sums[b];
  }
}

// Rounds blocks [first, first + count) of a row. REQUIRES: they are whole pairs of units.
template <class Scheme, bool kIsWhole>
PAGODA_INLINE void pack_blocks(const TileRow& row, std::int64_t first, int count,
                               const ActivationLayout& layout) {
  BlockScales scales;
  find_scales<Scheme, kIsWhole>(row, first, count, static_cast<float>(layout.largest_integer),
                                scales);
  BlockVectors v;
  for (int b = count; b < kBlocksAtOnce; ++b) v.of[b] = _mm512_setzero_si512();
  if (scales.are_numbers) {
    round_blocks<Scheme, kIsWhole, true>(row, first, count, scales, v);
  } else {
    round_blocks<Scheme, kIsWhole, false>(row, first, count, scales, v);
  }
  const __m512i sum =
      folded(v, [](__m512i a, __m512i b) PAGODA_FLATTEN { return _mm512_add_epi32(a, b); });
  if constexpr (Scheme::kIsSuper) {
    store_super_numbers<Scheme>(row, first, count, scales.scales, sum);
  } else {
    store_numbers<Scheme>(row, first, count, scales.scales, sum);
  }
}

template <class Scheme>
void pack_row(const TileRow& row, const ActivationLayout& layout, const TilePart& part) {
  static_assert(kTilePart % (kBlocksAtOnce * Scheme::kBlock) == 0);
  const std::int64_t blocks = end_unit(part, row.cols) * kUnit / Scheme::kBlock;
  for (std::int64_t first = part.begin / Scheme::kBlock; first < blocks; first += kBlocksAtOnce) {
    const auto count =
        static_cast<int>(blocks - first < kBlocksAtOnce ? blocks - first : kBlocksAtOnce);
    if (row.x && (first + count) * Scheme::kBlock <= row.cols) {
      pack_blocks<Scheme, true>(row, first, count, layout);
    } else {
      pack_blocks<Scheme, false>(row, first, count, layout);
    }
  }
}

// Returns the power of two of each of blocks [first, first + count), as bits of a float
// (avx512/tile-inl.h). For a block with NaN or infinity, the bits are those of infinity or above.
template <bool kIsWhole>
PAGODA_INLINE __m512i find_powers(const TileRow& row, std::int64_t first, int count) {
  BlockVectors magnitudes, sums;
  for (int b = count; b < kBlocksAtOnce; ++b) {
    magnitudes.of[b] = sums.of[b] = _mm512_setzero_si512();
  }
  const __m512 of_sum = _mm512_set1_ps(1.0f / kPowersMostSum);
  for (int b = 0; b < count; ++b) {
    __m512 largest = _mm512_setzero_ps(), sum = _mm512_setzero_ps();
    for_all<kPowersBlock / 16>([&](auto i) PAGODA_FLATTEN {
      const __m512 x = _mm512_abs_ps(load_some<kIsWhole>(row, (first + b) * kPowersBlock + 16 * i));
      largest = _mm512_max_ps(largest, x);
      sum = _mm512_fmadd_ps(x, of_sum, sum);
    });
    magnitudes.of[b] = _mm512_castps_si512(largest);
    sums.of[b] = _mm512_castps_si512(sum);
  }
  const __m512i largest = folded(
      magnitudes, [](__m512i a, __m512i b) PAGODA_FLATTEN { return _mm512_max_epu32(a, b); });
  const __m512i sum = folded(sums, [](__m512i a, __m512i b) PAGODA_FLATTEN {
    return _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)));
  });
  // The largest integer is one less than it may be, because these products are rounded.
  const __m512 of_largest =
      _mm512_mul_ps(_mm512_castsi512_ps(largest), _mm512_set1_ps(1.0f / (kPowersLargest - 1)));
  // Positive floats compare as their bits do. A NaN is in the sum, although the maximum has dropped
  // it.
  const __m512i least = _mm512_max_epu32(_mm512_castps_si512(of_largest), sum);
  const __m512i up = _mm512_add_epi32(least, _mm512_set1_epi32((1 << kMantissaBits) - 1));
  return _mm512_slli_epi32(_mm512_srli_epi32(up, kMantissaBits), kMantissaBits);
}

// Computes the integers of a block from its power. Replaces the power's bits in row.scales by the
// exponent above `least`.
template <bool kIsWhole>
PAGODA_INLINE void round_under_powers(const TileRow& row, std::int64_t block, __m512i least) {
  auto* power = reinterpret_cast<std::int32_t*>(row.scales + block * row.tile_rows);
  const __m512i bits = _mm512_max_epi32(_mm512_set1_epi32(*power), least);
  *power = _mm512_cvtsi512_si32(_mm512_sub_epi32(bits, least));
  const __m512 inverse =
      _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_set1_epi32(254 << kMantissaBits), bits));
  __m512i integers[4];
  for_all<4>([&](auto i) PAGODA_FLATTEN {
    const __m512 x = load_some<kIsWhole>(row, block * kPowersBlock + 16 * i);
    integers[i] = _mm512_cvtps_epi32(_mm512_mul_ps(x, inverse));
  });
  store_units<Rounding::kInt16>(row, block * kPowersBlock / kUnit, integers);
}

// The least power that blocks of a row may have. It follows from the row's largest power.
struct LeastPower {
  std::int32_t bits;
  float exponent;
};
LeastPower least_power(std::uint32_t largest) {
  constexpr std::uint32_t kOne = 1u << kMantissaBits, kInfinite = 255 * kOne;
  constexpr std::uint32_t kRange = kPowersRangeOfX * kOne;
  const std::uint32_t bits = largest > kRange + kOne ? largest - kRange : kOne;
  const auto exponent = static_cast<float>(static_cast<int>(bits / kOne) - 127);
  if (largest >= kInfinite) return {static_cast<std::int32_t>(kOne), __builtin_nanf("")};
  return {static_cast<std::int32_t>(bits), largest == 0 ? -__builtin_inff() : exponent};
}

void pack_row_under_powers(const TileRow& row) {
  static_assert(kPowersBlock == 2 * kUnit);
  const std::int64_t blocks = padded_units(row.cols) * kUnit / kPowersBlock;
  const std::int64_t whole = row.x ? row.cols / kPowersBlock : 0;
  __m512i most = _mm512_setzero_si512();
  for (std::int64_t first = 0; first < blocks; first += kBlocksAtOnce) {
    const auto count =
        static_cast<int>(blocks - first < kBlocksAtOnce ? blocks - first : kBlocksAtOnce);
    const __m512i powers = first + count <= whole ? find_powers<true>(row, first, count)
                                                  : find_powers<false>(row, first, count);
    most = _mm512_max_epu32(most, powers);
    alignas(kLineBytes) float of_blocks[kBlocksAtOnce];
    _mm512_store_ps(of_blocks, _mm512_castsi512_ps(powers));
    for (int b = 0; b < count; ++b) row.scales[(first + b) * row.tile_rows] = of_blocks[b];
  }
  const LeastPower least = least_power(_mm512_reduce_max_epu32(most));
  row.sums[0] = least.exponent;
  const __m512i bits = _mm512_set1_epi32(least.bits);
  for (std::int64_t b = 0; b < whole; ++b) round_under_powers<true>(row, b, bits);
  for (std::int64_t b = whole; b < blocks; ++b) round_under_powers<false>(row, b, bits);
}

void pack_row_of(const TileRow& row, const ActivationLayout& layout, const TilePart& part) {
  constexpr Rounding kInt16 = Rounding::kInt16;
  if (layout.rounding == Rounding::kInt8) {
    return pack_row<Scheme<Rounding::kInt8, 32, 32>>(row, layout, part);
  }
  if (is_super(layout)) {
    if (layout.block == 16) return pack_row<Scheme<kInt16, 16, kSuperGroup>>(row, layout, part);
    return pack_row<Scheme<kInt16, 32, kSuperGroup>>(row, layout, part);
  }
  if (has_powers(layout)) return pack_row_under_powers(row);
  pack_row<Scheme<kInt16, 32, kUnitsOfSpan * kUnit>>(row, layout, part);
}

}  // namespace

namespace avx512 {

std::int64_t tile_bytes(const ActivationLayout& layout, int tile_rows, std::int64_t cols) {
  if (is_super(layout)) {
    const int block_sums = layout.block == kUnit ? kBlocksOfSuper : 0;
    const int offsets = has_offsets(layout, tile_rows) ? kBlocksOfSuper * kOffsetsOfUnit : 0;
    const std::int64_t numbers =
        num_super_groups(cols) * (1 + num_sum_words(layout) + block_sums + offsets) * 4;
    const std::int64_t bytes =
        tile_rows * (padded_units(cols) * unit_bytes(layout, tile_rows) + numbers);
    return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  const int arrays = layout.rounding == Rounding::kInt8 ? 3 : has_powers(layout) ? 1 : 2;
  const std::int64_t least_powers = has_powers(layout) ? kLineBytes : 0;
  return integer_tile_bytes(layout, tile_rows, cols, unit_bytes(layout, tile_rows), arrays) +
         least_powers;
}

void pack_tile(const ActivationLayout& layout, const TileSource& source, const TilePart& part,
               std::byte* tile) {
  TileRow row = {.cols = source.cols, .tile_rows = source.tile_rows, .integers = tile};
  row.are_planes = has_planes(layout, source.tile_rows);
  row.are_split = is_split(layout, source.tile_rows);
  row.are_nibbles = layout.is_nibbles;
  row.code_offset = layout.code_offset;
  row.has_exact_sums = layout.has_exact_sums;
  row.unit_bytes = unit_bytes(layout, source.tile_rows);
  const std::int64_t row_bytes = row.are_planes ? kPlaneDepth : row.unit_bytes;
  if (is_super(layout)) {
    const SuperView view = super_view_of(tile, layout, source.tile_rows, source.cols);
    row.scales = const_cast<float*>(view.scales);
    row.integer_sums = reinterpret_cast<std::int32_t*>(const_cast<std::byte*>(view.sums));
    row.sums = const_cast<float*>(block_sums_of(view, layout, source.tile_rows, source.cols));
    if (has_offsets(layout, source.tile_rows)) {
      row.offsets =
          const_cast<std::int32_t*>(offsets_of(view, layout, source.tile_rows, source.cols));
    }
  } else {
    const TileView view = view_of(tile, layout, source.tile_rows, source.cols);
    row.scales = const_cast<float*>(view.scales);
    row.sums = const_cast<float*>(view.sums);
    row.integer_sums = const_cast<std::int32_t*>(view.integer_sums);
  }
  for (int r = 0; r < source.tile_rows; ++r) {
    TileRow next = row;
    next.x = source.row(r);
    next.integers += r * row_bytes;
    next.scales += r;
    next.sums += r;
    next.integer_sums += r;
    if (next.offsets) next.offsets += r * kOffsetsOfUnit;
    pack_row_of(next, layout, part);
  }
}

}  // namespace avx512
}  // namespace pagoda::cpu
