// The cpu product on AVX2 with FMA and F16C.
//
// Weights become 16-bit integers in registers, and are multiplied with x as 16-bit integers, block
// by block. vpmaddwd and vpaddd do twice the products of a float32 FMA, and a block's sum is exact.
// An offset that all codes of a kind share is not subtracted from each code: the block's sum starts
// at -offset * (sum of x), which is exact too.
//
// This file is compiled for one instruction set, so it uses only its own functions: an inline
// function of a shared header could be linked into code that runs on every machine.
#include <immintrin.h>

#include "backend/cpu/six_bit_words.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/sum_tile-inl.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kPairs = kUnit / 2;
constexpr int kHalves = 2;  // of a line or of 16 columns, a register each
constexpr int kHalfBytes = kLineBytes / kHalves;
constexpr int kHalvesBytes = 2 * kPanelColumns;  // 16 numbers in 16 bits
// Twelve sums, two registers of weights, one of x and one of a product are all sixteen registers.
constexpr int kMostRows = 6;
// Products of up to so many rows wait for memory. They prefetch weights kFetchAhead ahead.
constexpr int kFewRows = 2;
constexpr int kFetchAhead = 6144;  // bytes
constexpr float kLargestFloat = 3.40282347e38f;

// A value for each of 16 columns.
struct Integers {
  __m256i half[kHalves];
};
struct Floats {
  __m256 half[kHalves];
};

PAGODA_INLINE __m256i load_integers(const std::byte* from) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}
PAGODA_INLINE __m128i load_short(const std::byte* from) {
  return _mm_load_si128(reinterpret_cast<const __m128i*>(from));
}
PAGODA_INLINE Floats load_floats(const std::byte* from) {
  const auto* values = reinterpret_cast<const float*>(from);
  return {{_mm256_load_ps(values), _mm256_load_ps(values + 8)}};
}
PAGODA_INLINE Floats load_halves(const std::byte* halves) {
  return {{_mm256_cvtph_ps(load_short(halves)), _mm256_cvtph_ps(load_short(halves + 16))}};
}
PAGODA_INLINE __m256 widen_bfloat16(__m128i words) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
}
PAGODA_INLINE Floats load_bfloat16(const std::byte* words) {
  return {{widen_bfloat16(load_short(words)), widen_bfloat16(load_short(words + 16))}};
}
PAGODA_INLINE Floats to_floats(const Integers& integers) {
  return {{_mm256_cvtepi32_ps(integers.half[0]), _mm256_cvtepi32_ps(integers.half[1])}};
}
PAGODA_INLINE Floats times(const Floats& a, const Floats& b) {
  return {{_mm256_mul_ps(a.half[0], b.half[0]), _mm256_mul_ps(a.half[1], b.half[1])}};
}
// Keeps the compiler from adding all products of a block in an order that spills registers.
PAGODA_INLINE void keep_order(__m256i& sum) {
  __asm__("" : "+x"(sum));
}
PAGODA_INLINE void add_product(const Floats& a, __m256 b, Floats& sum) {
  for_all<kHalves>(
      [&](auto h) PAGODA_FLATTEN { sum.half[h] = _mm256_fmadd_ps(a.half[h], b, sum.half[h]); });
}

// The number to subtract from a kind's codes, or from its table's levels, to get their values.
template <PanelKind kKind>
constexpr int kOffset = kKind == PanelKind::kQ8_0 || kKind == PanelKind::kInt14 ? 0
                        : has_levels(kKind) ? -lowest_level(kKind)
                                            : -code_value(kKind, 0);

// Levels minus the lowest one, a byte each. In IQ4's table code 0 has zero, so that a lookup of the
// zero byte above a code yields zero.
struct LevelTable {
  alignas(kHalfBytes) std::uint8_t levels[kHalfBytes];
};
constexpr LevelTable make_levels(PanelKind kind) {
  LevelTable table = {};
  for (int i = 0; i < kHalfBytes; ++i) {
    table.levels[i] = static_cast<std::uint8_t>(code_value(kind, i % 16) - lowest_level(kind));
  }
  return table;
}
template <PanelKind kKind>
constexpr LevelTable kLevels = make_levels(kKind);

// Returns the codes of kBits each of pair kPair of a unit, at bit kTo of their half-words; other
// bits are zero.
template <int kBits, int kPair, int kTo = 0>
PAGODA_INLINE __m256i codes_of(const std::byte* plane) {
  constexpr int kCodes = 16 / kBits;  // in a half-word
  constexpr int kFrom = kBits * (kPair % kCodes);
  __m256i codes = load_integers(plane + kLineBytes * (kPair / kCodes));
  if constexpr (kFrom > kTo) codes = _mm256_srli_epi16(codes, kFrom - kTo);
  if constexpr (kFrom < kTo) codes = _mm256_slli_epi16(codes, kTo - kFrom);
  if constexpr (kTo == 0 && kFrom + kBits == 16) return codes;
  return _mm256_and_si256(codes, _mm256_set1_epi16(((1 << kBits) - 1) << kTo));
}

// Returns pair kPair of a unit of 8 columns as 8 x 2 integers of 16 bits: the values plus kOffset.
template <PanelKind kKind, int kPair>
PAGODA_INLINE __m256i pair_of(const std::byte* low, const std::byte* high) {
  constexpr PanelFormat kFormat = panel_format(kKind);
  if constexpr (kKind == PanelKind::kInt14) {
    return load_integers(low + kLineBytes * kPair);
  } else if constexpr (kKind == PanelKind::kQ8_0) {
    const __m256i line = load_integers(low + kLineBytes * (kPair / 2));
    if constexpr (kPair % 2 == 1) return _mm256_srai_epi16(line, 8);
    return _mm256_srai_epi16(_mm256_slli_epi16(line, 8), 8);
  } else {
    __m256i codes = codes_of<kFormat.low_bits, kPair>(low);
    if constexpr (kFormat.high_bits > 0) {
      codes = _mm256_or_si256(codes, codes_of<kFormat.high_bits, kPair, kFormat.low_bits>(high));
    }
    if constexpr (has_levels(kKind)) {
      // A lookup of a byte whose highest bit is set yields zero, whatever the table.
      if constexpr (kLevels<kKind>.levels[0] != 0) {
        codes = _mm256_or_si256(codes, _mm256_set1_epi16(-0x8000));
      }
      const auto* levels = reinterpret_cast<const __m256i*>(kLevels<kKind>.levels);
      codes = _mm256_shuffle_epi8(_mm256_load_si256(levels), codes);
    }
    return codes;
  }
}

// The scale and the minimum of a block.
struct BlockNumbers {
  Floats scale;
  Floats minimum;
};

// Reads the six-bit numbers of 8 columns.
PAGODA_INLINE void read_six_bit(const std::byte* words, int block, __m256i& scale,
                                __m256i& minimum) {
  using Words = std::uint32_t __attribute__((vector_size(32)));
  const auto word = [&](int i)
                        PAGODA_FLATTEN { return Words(load_integers(words + i * kLineBytes)); };
  const auto of_block =
      six_bit_numbers(word(0), word(1), word(2), static_cast<std::uint32_t>(block));
  scale = __m256i(of_block.scale);
  minimum = __m256i(of_block.minimum);
}

PAGODA_INLINE __m128i load_bytes(const std::byte* from) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
}

// Returns the powers 2^(exponent - 128) of a block of MXFP4. Those of exponents 0 and 1 are subnormal
// numbers; a shift of more than 2 would not be larger than the normal numbers' bits.
PAGODA_INLINE Floats scales_of_exponents(const std::byte* exponents) {
  Floats scales;
  for_all<kHalves>([&](auto h) PAGODA_FLATTEN {
    const __m256i exponent =
        _mm256_cvtepu8_epi32(load_bytes(exponents + h * (kPanelColumns / kHalves)));
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(exponent, _mm256_set1_epi32(1)), 23);
    const __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000),
                                            _mm256_min_epi32(exponent, _mm256_set1_epi32(2)));
    scales.half[h] = _mm256_castsi256_ps(_mm256_max_epi32(normal, small));
  });
  return scales;
}

// Returns the numbers of block `block` of a group.
template <PanelKind kKind>
PAGODA_INLINE BlockNumbers block_numbers(const std::byte* group, int block) {
  constexpr PanelHeader kHeader = panel_format(kKind).header;
  constexpr int kHalfColumns = kPanelColumns / kHalves;
  if constexpr (kHeader == PanelHeader::kPowers) {
    return {load_floats(group), {}};
  } else if constexpr (kHeader == PanelHeader::kScales) {
    return {load_halves(group + block * kHalvesBytes), {}};
  } else if constexpr (kHeader == PanelHeader::kScalesMinima) {
    return {load_halves(group), load_halves(group + kHalvesBytes)};
  } else {
    Integers scale, minimum;
    for_all<kHalves>([&](auto h) PAGODA_FLATTEN {
      const std::byte* bytes = group + kLineBytes + block * kPanelColumns + h * kHalfColumns;
      if constexpr (kHeader == PanelHeader::kSixBit) {
        read_six_bit(group + kLineBytes + h * kHalfBytes, block, scale.half[h], minimum.half[h]);
      } else if constexpr (kHeader == PanelHeader::kBytes) {
        scale.half[h] = _mm256_cvtepi8_epi32(load_bytes(bytes));
      } else {
        const __m256i both = _mm256_cvtepu8_epi32(load_bytes(bytes));
        scale.half[h] = _mm256_and_si256(both, _mm256_set1_epi32(15));
        minimum.half[h] = _mm256_srli_epi32(both, 4);
      }
    });
    BlockNumbers numbers = {times(load_halves(group), to_floats(scale)), {}};
    if constexpr (kHeader != PanelHeader::kBytes) {
      numbers.minimum = times(load_halves(group + kHalvesBytes), to_floats(minimum));
      for_all<kHalves>([&](auto h) PAGODA_FLATTEN {
        numbers.minimum.half[h] = _mm256_sub_ps(_mm256_setzero_ps(), numbers.minimum.half[h]);
      });
    }
    return numbers;
  }
}

PAGODA_INLINE void store_columns(const Floats& sum, float* out, const float* bias,
                                 std::int64_t count) {
  if (count >= kPanelColumns) {
    for_all<kHalves>([&](auto h) PAGODA_FLATTEN {
      __m256 value = sum.half[h];
      if (bias) value = _mm256_add_ps(value, _mm256_loadu_ps(bias + 8 * h));
      _mm256_storeu_ps(out + 8 * h, value);
    });
    return;
  }
  alignas(kHalfBytes) float values[kPanelColumns];
  for_all<kHalves>([&](auto h) PAGODA_FLATTEN { _mm256_store_ps(values + 8 * h, sum.half[h]); });
  for (std::int64_t i = 0; i < count; ++i) out[i] = bias ? values[i] + bias[i] : values[i];
}

template <int kRows>
PAGODA_INLINE void store_sums(const Floats (&sums)[kRows], const PanelProduct& product,
                              std::int64_t first_row, std::int64_t panel) {
  const std::int64_t column = panel * kPanelColumns;
  const std::int64_t left = product.num_columns - column;
  if (left <= 0) return;
  for_all<kRows>([&](auto r) PAGODA_FLATTEN {
    const std::int64_t row = first_row + r;
    if (row >= product.num_rows) return;
    store_columns(sums[r], product.out + row * product.out_stride + column,
                  product.bias ? product.bias + column : nullptr, left);
  });
}

template <int kRows>
PAGODA_INLINE void clear(Floats (&sums)[kRows]) {
  for_all<kRows>([&](auto r) PAGODA_FLATTEN {
    for_all<kHalves>([&](auto h) PAGODA_FLATTEN { sums[r].half[h] = _mm256_setzero_ps(); });
  });
}

// A tile of rows times a panel of a quantised kind.
template <PanelKind kKind, int kRows>
class IntegerTile {
 public:
  static constexpr PanelFormat kFormat = panel_format(kKind);
  static constexpr int kUnitsOfBlock = kFormat.block > kUnit ? kFormat.block / kUnit : 1;
  static constexpr int kBlocksOfUnit = kFormat.block > kUnit ? 1 : kUnit / kFormat.block;
  static constexpr int kPairsOfBlock = kPairs / kBlocksOfUnit;  // in one unit

  // Not inlined: it takes all registers.
  __attribute__((noinline)) static void multiply(const PanelProduct& product,
                                                 std::int64_t first_row, std::int64_t panel) {
    TileView tile = view_of(product.tiles + first_row / kRows * product.tile_bytes, product.layout,
                            kRows, product.cols);
    const std::byte* from = product.panels + panel * product.panel_bytes;
    const std::byte* group = from + product.header_area;
    Floats sums[kRows];
    clear(sums);
    const std::int64_t num_groups = kFormat.num_groups(product.cols);
    for (std::int64_t g = 0; g < num_groups; ++g, group += kFormat.group_bytes()) {
      for (int unit = 0; unit < kFormat.group / kUnit; unit += kUnitsOfBlock) {
        if constexpr (kRows <= kFewRows) fetch_ahead(group + unit * kUnitBytes, product.prefetch);
        for_all<kBlocksOfUnit>([&](auto block) PAGODA_FLATTEN {
          Integers s[kRows];
          start(tile, s);
          for_all<kUnitsOfBlock>([&](auto u) PAGODA_FLATTEN {
            add_products<decltype(block)::kValue>(group, unit + u,
                                                  tile.units + u * kRows * kLineBytes, s);
          });
          const BlockNumbers numbers =
              numbers_of(product, from, group, g, unit / kUnitsOfBlock * kBlocksOfUnit + block);
          for_all<kRows>([&](auto r)
                             PAGODA_FLATTEN { add_block(numbers, s[r], tile, r, sums[r]); });
          tile.scales += kRows;
          tile.sums += kRows;
        });
        tile.units += kUnitsOfBlock * kRows * kLineBytes;
      }
    }
    store_sums<kRows>(sums, product, first_row, panel);
  }

 private:
  static constexpr int kUnitBytes = kFormat.group_bytes() / (kFormat.group / kUnit);
  static constexpr int kLines = (kUnitBytes * kUnitsOfBlock + kLineBytes - 1) / kLineBytes;

  // Prefetches the lines that are kFetchAhead bytes ahead of a block's units. Zen 3's hardware
  // itself prefetches lines of BF16 and F16, of which a block has many, but hardly any lines of
  // codes (docs/performance/log.md).
  PAGODA_INLINE static void fetch_ahead(const std::byte* units, WeightPrefetch way) {
    if (way == WeightPrefetch::kPastCaches) return;
    if (kKind == PanelKind::kInt14 && way == WeightPrefetch::kSecondLevelHalf) return;
    for_all<kLines>([&](auto line) PAGODA_FLATTEN {
      __builtin_prefetch(units + kFetchAhead + kLineBytes * line, 0, 2);
    });
  }

  PAGODA_INLINE static void start(const TileView& tile, Integers (&s)[kRows]) {
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      s[r].half[0] = _mm256_set1_epi32(kOffset<kKind> ? -kOffset<kKind> * tile.sums[r] : 0);
      s[r].half[1] = s[r].half[0];
    });
  }

  // Adds the exact sums over the part of block kBlock that is in one unit.
  template <int kBlock>
  PAGODA_INLINE static void add_products(const std::byte* group, int unit, const std::byte* pairs,
                                         Integers (&s)[kRows]) {
    const std::byte* low = group + kFormat.low_plane() + unit * kFormat.low_bits * kLineBytes;
    const std::byte* high = group + kFormat.high_plane() + unit * kFormat.high_bits * kLineBytes;
    for_all<kPairsOfBlock>([&](auto i) PAGODA_FLATTEN {
      constexpr int kPair = kBlock * kPairsOfBlock + decltype(i)::kValue;
      const __m256i w[kHalves] = {pair_of<kKind, kPair>(low, high),
                                  pair_of<kKind, kPair>(low + kHalfBytes, high + kHalfBytes)};
      for_all<kRows>([&](auto r) PAGODA_FLATTEN {
        const auto* pair =
            reinterpret_cast<const std::int32_t*>(pairs + r * kLineBytes + 4 * kPair);
        const __m256i x = _mm256_set1_epi32(*pair);
        for_all<kHalves>([&](auto h) PAGODA_FLATTEN {
          s[r].half[h] = _mm256_add_epi32(s[r].half[h], _mm256_madd_epi16(w[h], x));
          keep_order(s[r].half[h]);
        });
      });
    });
  }

  PAGODA_INLINE static void add_block(const BlockNumbers& numbers, const Integers& s,
                                      const TileView& tile, int row, Floats& sum) {
    const float scale = tile.scales[row];
    const Floats scaled = to_floats(s);
    for_all<kHalves>([&](auto h) PAGODA_FLATTEN {
      sum.half[h] = _mm256_fmadd_ps(
          numbers.scale.half[h], _mm256_mul_ps(scaled.half[h], _mm256_set1_ps(scale)), sum.half[h]);
    });
    if constexpr (kFormat.has_minimum()) {
      const float x = scale * static_cast<float>(tile.sums[row]);
      add_product(numbers.minimum, _mm256_set1_ps(x), sum);
    }
  }

  PAGODA_INLINE static BlockNumbers numbers_of(const PanelProduct& product, const std::byte* panel,
                                               const std::byte* group, std::int64_t g, int block) {
    if constexpr (kFormat.header == PanelHeader::kAffine) {
      const std::byte* header = panel + g / product.units_of_header * kLineBytes;
      if (product.header_is_bfloat16) {
        return {load_bfloat16(header), load_bfloat16(header + kHalvesBytes)};
      }
      return {load_halves(header), load_halves(header + kHalvesBytes)};
    } else if constexpr (kFormat.header == PanelHeader::kExponents) {
      return {scales_of_exponents(panel + g * kPanelColumns), {}};
    } else {
      return block_numbers<kKind>(group, block);
    }
  }
};

// Multiplies panels one at a time, so that each is read as one ascending stream.
template <class Tile, int kRows>
void multiply_tiles(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  for (std::int64_t panel = begin; panel < end; ++panel) {
    for (std::int64_t row = 0; row < product.num_rows; row += kRows) {
      Tile::multiply(product, row, panel);
    }
  }
}

template <PanelKind kKind>
void multiply_kind(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  switch (product.tile_rows) {
    case 1:
      return multiply_tiles<IntegerTile<kKind, 1>, 1>(product, begin, end);
    case 2:
      return multiply_tiles<IntegerTile<kKind, 2>, 2>(product, begin, end);
    case 4:
      return multiply_tiles<IntegerTile<kKind, 4>, 4>(product, begin, end);
    default:
      return multiply_tiles<IntegerTile<kKind, 6>, 6>(product, begin, end);
  }
}

bool layout_of(PanelKind kind, ActivationLayout& layout) {
  return integer_layout_of(kind, 32767, layout);
}

int most_rows(const ActivationLayout&, std::int64_t) {
  return kMostRows;
}

// Loads values [k, k + 8) of a row.
PAGODA_INLINE __m256 load_some(const TileRow& row, std::int64_t k) {
  const std::int64_t left = row.x ? row.cols - k : 0;
  if (left >= 8) return _mm256_loadu_ps(row.x + k);
  if (left <= 0) return _mm256_setzero_ps();
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i exist = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(left)), lanes);
  return _mm256_maskload_ps(row.x + k, exist);
}

// Sixteen values.
struct Sixteen {
  __m256 x[2];
};

// Returns the bits of the largest magnitude. Magnitudes are compared by their bits, among which NaN
// is the largest, so that it reaches the scale and every product.
PAGODA_INLINE std::uint32_t largest_of(const Sixteen& values) {
  const __m256i mask = _mm256_set1_epi32(0x7fffffff);
  const __m256i both = _mm256_max_epu32(_mm256_and_si256(mask, _mm256_castps_si256(values.x[0])),
                                        _mm256_and_si256(mask, _mm256_castps_si256(values.x[1])));
  __m128i m = _mm_max_epu32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
  return static_cast<std::uint32_t>(
      _mm_cvtsi128_si32(_mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1))));
}

// Stores the values as 16-bit integers; returns their sum.
PAGODA_INLINE std::int32_t pack_int16(const Sixteen& values, float limit, float largest,
                                      std::byte* to) {
  const __m256 inverse = _mm256_set1_ps(largest > 0 ? limit / largest : 0.0f);
  const __m256i first = _mm256_cvtps_epi32(_mm256_mul_ps(values.x[0], inverse));
  const __m256i second = _mm256_cvtps_epi32(_mm256_mul_ps(values.x[1], inverse));
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xd8);
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), packed);
  const __m256i sums = _mm256_add_epi32(first, second);
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

void pack_row(const TileRow& row, const ActivationLayout& layout, const TilePart& part) {
  const int quarters = layout.block / 16;  // runs of 16 k in a block
  const auto limit = static_cast<float>(layout.largest_integer);
  const std::int64_t end = 2 * end_unit(part, row.cols);
  for (std::int64_t first = part.begin / 16; first < end; first += quarters) {
    Sixteen values[4];
    std::uint32_t bits = 0;
    for (int i = 0; i < quarters; ++i) {
      const std::int64_t k = (first + i) * 16;
      values[i] = {{load_some(row, k), load_some(row, k + 8)}};
      const std::uint32_t of_these = largest_of(values[i]);
      if (of_these > bits) bits = of_these;
    }
    const auto largest = __builtin_bit_cast(float, bits);
    // A block with NaN or infinity gets integers of zero. Only its scale is NaN or infinite.
    if (!(largest <= kLargestFloat)) {
      for (int i = 0; i < quarters; ++i) values[i] = {};
    }
    std::int32_t sum = 0;
    for (int i = 0; i < quarters; ++i) {
      const std::int64_t unit = (first + i) / 2;
      std::byte* to = row.units + unit * row.tile_rows * kLineBytes + (first + i) % 2 * kHalfBytes;
      sum += pack_int16(values[i], limit, largest, to);
    }
    row.scales[first / quarters * row.tile_rows] = largest / limit;
    row.sums[first / quarters * row.tile_rows] = sum;
  }
}

void pack_tile(const ActivationLayout& layout, const TileSource& source, const TilePart& part,
               std::byte* tile) {
  for (int r = 0; r < source.tile_rows; ++r) {
    pack_row(row_of(layout, source, tile, r), layout, part);
  }
}

void multiply(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  // layout_of() has left float32 to the portable code.
  with_kind(product.kind, [&](auto kind) {
    constexpr PanelKind kKind = decltype(kind)::kValue;
    if constexpr (kKind != PanelKind::kF32) multiply_kind<kKind>(product, begin, end);
  });
}

constexpr LinearKernels kKernels = {.layout_of = layout_of,
                                    .most_rows = most_rows,
                                    .tile_bytes = tile_bytes,
                                    .pack_tile = pack_tile,
                                    .multiply = multiply};

}  // namespace

const LinearKernels* const kAvx2Kernels = &kKernels;

}  // namespace pagoda::cpu
