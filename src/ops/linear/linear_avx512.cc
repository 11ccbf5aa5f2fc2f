// The cpu product on AVX-512 with BF16, VNNI and VBMI.
//
// Quantised weights become 16-bit integers in registers, up to six bits by a table (vpermw,
// vpermi2w), and meet x as 16-bit integers by block: a block's sum is exact, whatever shares it,
// and the rounding of x costs 2e-5 where bfloat16 would cost 1.3e-3, at the same speed. bfloat16
// weights meet x in bfloat16. A line of a plane is loaded once and shifted, codes are never written
// to memory: measured, unpacking into a buffer never beat it, even for 512 rows.
//
// This file is compiled for its instruction set, so it keeps to its own functions: an inline
// function of a shared header would be linked into code that runs everywhere.
#include <immintrin.h>

#include "ops/linear/linear_kernels.h"

#define PAGODA_FLATTEN __attribute__((always_inline))
#define PAGODA_INLINE inline PAGODA_FLATTEN

namespace pagoda::cpu {
namespace {

constexpr int kPairs = kUnit / 2;
constexpr int kHalvesBytes = 2 * kPanelColumns;
// Measured on a Zen 5 with 2 panels: six rows leave sums and blocks' sums in registers (85 % of the
// dot products' peak; twelve rows with the sums in memory: 65 to 75 %), bfloat16 needs eight to
// hide its latency (99 %; six rows: 88 %).
constexpr int kMostIntegerRows = 6;
constexpr int kMostBf16Rows = 8;

// Calls visit(0), visit(1), ... with compile-time numbers: an array of sums that a loop indexes at
// run time lives in memory.
template <int kNumber>
struct Index {
  static constexpr int kValue = kNumber;
  constexpr operator int() const { return kNumber; }
};
template <int kCount, int kFrom = 0, class Visit>
PAGODA_INLINE void for_all(const Visit& visit) {
  if constexpr (kFrom < kCount) {
    visit(Index<kFrom>());
    for_all<kCount, kFrom + 1>(visit);
  }
}

PAGODA_INLINE __m512i load_line(const std::byte* line) {
  return _mm512_load_si512(line);
}
PAGODA_INLINE __m512 load_halves(const std::byte* halves) {
  return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(halves)));
}
PAGODA_INLINE __m512 load_bfloat16(const std::byte* words) {
  const __m256i bits = _mm256_load_si256(reinterpret_cast<const __m256i*>(words));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// The codes of pair kPair of a unit, each at bit kTo of its half-word, other bits as they come.
template <int kBits, int kPair, int kTo = 0>
PAGODA_INLINE __m512i shifted_codes(const std::byte* plane) {
  constexpr int kCodes = 16 / kBits;  // a half-word
  constexpr int kShift = kBits * (kPair % kCodes) - kTo;
  const __m512i line = load_line(plane + kLineBytes * (kPair / kCodes));
  if constexpr (kShift > 0) return _mm512_srli_epi16(line, kShift);
  if constexpr (kShift < 0) return _mm512_slli_epi16(line, -kShift);
  return line;
}

// What each code stands for; bits above the code are whatever the shift left there.
struct CodeTable {
  alignas(kLineBytes) std::int16_t values[64];
};
template <PanelKind kKind>
constexpr CodeTable make_table() {
  CodeTable table = {};
  const int num_codes = 1 << panel_format(kKind).code_bits();
  for (int i = 0; i < 64; ++i) {
    table.values[i] = static_cast<std::int16_t>(code_value(kKind, i % num_codes));
  }
  return table;
}

// Pairs of codes of a panel as 16 x 2 integers of 16 bits.
template <PanelKind kKind>
class PairReader {
 public:
  static constexpr PanelFormat kFormat = panel_format(kKind);

  PAGODA_INLINE PairReader()
      : first_(_mm512_load_si512(kTable.values)), second_(_mm512_load_si512(kTable.values + 32)) {}

  template <int kPair>
  PAGODA_INLINE __m512i pair(const std::byte* low, const std::byte* high) const {
    if constexpr (kFormat.low_bits == 8) {
      return byte_pair<kPair>(low);
    } else {
      __m512i codes = shifted_codes<kFormat.low_bits, kPair>(low);
      if constexpr (kFormat.high_bits > 0) {
        const __m512i above = shifted_codes<kFormat.high_bits, kPair, kFormat.low_bits>(high);
        const __m512i mask = _mm512_set1_epi16((1 << kFormat.low_bits) - 1);
        codes = _mm512_ternarylogic_epi32(mask, codes, above, 0xca);  // mask ? codes : above
      }
      if constexpr (kFormat.code_bits() == 6) {
        return _mm512_permutex2var_epi16(first_, codes, second_);
      } else {
        return _mm512_permutexvar_epi16(codes, first_);
      }
    }
  }

 private:
  static constexpr CodeTable kTable = make_table<kKind>();

  template <int kPair>
  PAGODA_INLINE static __m512i byte_pair(const std::byte* low) {
    const __m512i line = load_line(low + kLineBytes * (kPair / 2));
    if constexpr (kKind == PanelKind::kQ8_0) {
      if constexpr (kPair % 2 == 1) return _mm512_srai_epi16(line, 8);
      return _mm512_srai_epi16(_mm512_slli_epi16(line, 8), 8);
    } else {
      if constexpr (kPair % 2 == 1) return _mm512_srli_epi16(line, 8);
      return _mm512_and_si512(line, _mm512_set1_epi16(255));
    }
  }

  __m512i first_, second_;
};

// The scale and the minimum of a block.
struct BlockNumbers {
  __m512 scale;
  __m512 minimum;
};

// Bits [at, at + 6) of each word; of block 7, low four and high two bits.
PAGODA_INLINE __m512i six_bits(__m512i words, int at) {
  return _mm512_and_si512(_mm512_srl_epi32(words, _mm_cvtsi32_si128(at)), _mm512_set1_epi32(63));
}
PAGODA_INLINE __m512i last_six_bits(__m512i low, int at, __m512i high) {
  const __m512i four =
      _mm512_and_si512(_mm512_srl_epi32(low, _mm_cvtsi32_si128(at)), _mm512_set1_epi32(15));
  return _mm512_or_si512(four, _mm512_slli_epi32(_mm512_srli_epi32(high, 30), 4));
}

PAGODA_INLINE void six_bit_numbers(const std::byte* words, int block, __m512i& scale,
                                   __m512i& minimum) {
  const __m512i low = load_line(words + 2 * kLineBytes);
  if (block < 5) {
    scale = six_bits(load_line(words), 6 * block);
    minimum = six_bits(load_line(words + kLineBytes), 6 * block);
  } else if (block < 7) {
    scale = six_bits(low, 6 * (block - 5));
    minimum = six_bits(low, 12 + 6 * (block - 5));
  } else {
    scale = last_six_bits(low, 24, load_line(words));
    minimum = last_six_bits(low, 28, load_line(words + kLineBytes));
  }
}

// Block `block` of a group.
template <PanelKind kKind>
PAGODA_INLINE BlockNumbers block_numbers(const std::byte* group, int block) {
  constexpr PanelHeader kHeader = panel_format(kKind).header;
  const __m512 zero = _mm512_setzero_ps();
  if constexpr (kHeader == PanelHeader::kScales) {
    return {load_halves(group + block * kHalvesBytes), zero};
  } else if constexpr (kHeader == PanelHeader::kScalesMinima) {
    return {load_halves(group), load_halves(group + kHalvesBytes)};
  } else if constexpr (kHeader == PanelHeader::kBytes) {
    const __m128i bytes = _mm_load_si128(
        reinterpret_cast<const __m128i*>(group + kLineBytes + block * kPanelColumns));
    const __m512 scale = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
    return {_mm512_mul_ps(load_halves(group), scale), zero};
  } else {
    __m512i scale, minimum;
    if constexpr (kHeader == PanelHeader::kSixBit) {
      six_bit_numbers(group + kLineBytes, block, scale, minimum);
    } else {
      const __m512i both = _mm512_cvtepu8_epi32(_mm_load_si128(
          reinterpret_cast<const __m128i*>(group + kLineBytes + block * kPanelColumns)));
      scale = _mm512_and_si512(both, _mm512_set1_epi32(15));
      minimum = _mm512_srli_epi32(both, 4);
    }
    const __m512 product =
        _mm512_mul_ps(load_halves(group + kHalvesBytes), _mm512_cvtepi32_ps(minimum));
    return {_mm512_mul_ps(load_halves(group), _mm512_cvtepi32_ps(scale)),
            _mm512_sub_ps(zero, product)};
  }
}

// A tile's memory: for each unit of 32 k the pairs [rows][16], then for each block [blocks][rows]:
// the scale of its integers, and their sum times the scale.
struct TileView {
  const std::byte* pairs;
  const float* scales;
  const float* sums;
};

// Groups of 64 are whole in a panel, so x is padded to one.
PAGODA_INLINE std::int64_t padded_units(std::int64_t cols) {
  return (cols + 2 * kUnit - 1) / (2 * kUnit) * 2;
}
PAGODA_INLINE std::int64_t num_blocks(const ActivationLayout& layout, std::int64_t cols) {
  return layout.rounding == Rounding::kBf16 ? 0 : padded_units(cols) * (kUnit / layout.block);
}

std::int64_t tile_bytes(const ActivationLayout& layout, int tile_rows, std::int64_t cols) {
  const std::int64_t numbers = 2 * num_blocks(layout, cols) * tile_rows * 4;
  const std::int64_t bytes = padded_units(cols) * tile_rows * kLineBytes + numbers;
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

PAGODA_INLINE TileView view_of(const std::byte* tile, const ActivationLayout& layout, int rows,
                               std::int64_t cols) {
  const auto* scales =
      reinterpret_cast<const float*>(tile + padded_units(cols) * rows * kLineBytes);
  return {tile, scales, scales + num_blocks(layout, cols) * rows};
}

PAGODA_INLINE __m512i broadcast_pair(const std::byte* pairs) {
  return _mm512_set1_epi32(*reinterpret_cast<const std::int32_t*>(pairs));
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

// A tile of rows times kPanels panels of a quantised kind.
template <PanelKind kKind, int kRows, int kPanels>
class IntegerTile {
 public:
  static constexpr PanelFormat kFormat = panel_format(kKind);
  static constexpr int kBlocksOfUnit = kUnit / kFormat.block;
  static constexpr int kPairsOfBlock = kPairs / kBlocksOfUnit;

  // Not inlined: it takes all registers.
  __attribute__((noinline)) static void multiply(const PanelProduct& product,
                                                 std::int64_t first_row, std::int64_t first_panel) {
    const PairReader<kKind> reader;
    const TileView tile = view_of(product.tiles + first_row / kRows * product.tile_bytes,
                                  product.layout, kRows, product.cols);
    const std::byte* panel = product.panels + first_panel * product.panel_bytes;
    const std::byte* group = panel + product.header_area;
    const std::byte* pairs = tile.pairs;
    const float* scales = tile.scales;
    const float* row_sums = tile.sums;
    __m512 sums[kRows][kPanels];
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      for_all<kPanels>([&](auto p) PAGODA_FLATTEN { sums[r][p] = _mm512_setzero_ps(); });
    });
    const std::int64_t num_groups = kFormat.num_groups(product.cols);
    for (std::int64_t g = 0; g < num_groups; ++g, group += kFormat.group_bytes()) {
      for (int unit = 0; unit < kFormat.group / kUnit; ++unit, pairs += kRows * kLineBytes) {
        for_all<kBlocksOfUnit>([&](auto block) PAGODA_FLATTEN {
          __m512i s[kRows][kPanels];
          add_products<decltype(block)::kValue>(reader, group, product.panel_bytes, unit, pairs, s);
          for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
            const BlockNumbers numbers =
                numbers_of(product, panel + p * product.panel_bytes,
                           group + p * product.panel_bytes, g, unit * kBlocksOfUnit + block);
            for_all<kRows>([&](auto r) PAGODA_FLATTEN {
              const __m512 sum =
                  _mm512_mul_ps(_mm512_cvtepi32_ps(s[r][p]), _mm512_set1_ps(scales[r]));
              sums[r][p] = _mm512_fmadd_ps(numbers.scale, sum, sums[r][p]);
              if constexpr (kFormat.has_minimum()) {
                sums[r][p] =
                    _mm512_fmadd_ps(numbers.minimum, _mm512_set1_ps(row_sums[r]), sums[r][p]);
              }
            });
          });
          scales += kRows;
          row_sums += kRows;
        });
      }
    }
    store_sums<kRows, kPanels>(sums, product, first_row, first_panel);
  }

 private:
  // The exact sums over one block.
  template <int kBlock>
  PAGODA_INLINE static void add_products(const PairReader<kKind>& reader, const std::byte* group,
                                         std::int64_t panel_bytes, int unit, const std::byte* pairs,
                                         __m512i (&s)[kRows][kPanels]) {
    const std::byte* low = group + kFormat.low_plane() + unit * kFormat.low_bits * kLineBytes;
    const std::byte* high = group + kFormat.high_plane() + unit * kFormat.high_bits * kLineBytes;
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      for_all<kPanels>([&](auto p) PAGODA_FLATTEN { s[r][p] = _mm512_setzero_si512(); });
    });
    for_all<kPairsOfBlock>([&](auto i) PAGODA_FLATTEN {
      constexpr int kPair = kBlock * kPairsOfBlock + decltype(i)::kValue;
      __m512i w[kPanels];
      for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
        w[p] = reader.template pair<kPair>(low + p * panel_bytes, high + p * panel_bytes);
      });
      for_all<kRows>([&](auto r) PAGODA_FLATTEN {
        const __m512i x = broadcast_pair(pairs + r * kLineBytes + 4 * kPair);
        for_all<kPanels>([&](auto p)
                             PAGODA_FLATTEN { s[r][p] = _mm512_dpwssd_epi32(s[r][p], w[p], x); });
      });
    });
  }

  PAGODA_INLINE static BlockNumbers numbers_of(const PanelProduct& product, const std::byte* panel,
                                               const std::byte* group, std::int64_t g, int block) {
    if constexpr (kFormat.header == PanelHeader::kAffine) {
      const std::byte* header = panel + g / product.units_of_header * kLineBytes;
      if (product.header_is_bfloat16)
        return {load_bfloat16(header), load_bfloat16(header + kHalvesBytes)};
      return {load_halves(header), load_halves(header + kHalvesBytes)};
    } else {
      return block_numbers<kKind>(group, block);
    }
  }
};

// A tile of rows times kPanels panels of bfloat16: a chain over all k.
template <int kRows, int kPanels>
struct Bf16Tile {
  __attribute__((noinline)) static void multiply(const PanelProduct& product,
                                                 std::int64_t first_row, std::int64_t first_panel) {
    const std::byte* panel = product.panels + first_panel * product.panel_bytes;
    const std::byte* pairs = product.tiles + first_row / kRows * product.tile_bytes;
    __m512 sums[kRows][kPanels];
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      for_all<kPanels>([&](auto p) PAGODA_FLATTEN { sums[r][p] = _mm512_setzero_ps(); });
    });
    const std::int64_t units = padded_units(product.cols);
    for (std::int64_t unit = 0; unit < units; ++unit, pairs += kRows * kLineBytes) {
      for_all<kPairs>([&](auto i) PAGODA_FLATTEN {
        __m512bh w[kPanels];
        for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
          w[p] = (__m512bh)load_line(panel + p * product.panel_bytes + kLineBytes * i);
        });
        for_all<kRows>([&](auto r) PAGODA_FLATTEN {
          const auto x = (__m512bh)broadcast_pair(pairs + r * kLineBytes + 4 * i);
          for_all<kPanels>(
              [&](auto p) PAGODA_FLATTEN { sums[r][p] = _mm512_dpbf16_ps(sums[r][p], w[p], x); });
        });
      });
      panel += kPairs * kLineBytes;
    }
    store_sums<kRows, kPanels>(sums, product, first_row, first_panel);
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
template <PanelKind kKind>
void multiply_integers(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  switch (product.tile_rows) {
    case 1:
      return multiply_tiles<IntegerTile<kKind, 1, 1>, 1, 1>(product, begin, end);
    case 2:
      return multiply_tiles<IntegerTile<kKind, 2, 1>, 2, 1>(product, begin, end);
    case 4:
      return multiply_tiles<IntegerTile<kKind, 4, 2>, 4, 2>(product, begin, end);
    default:
      return multiply_tiles<IntegerTile<kKind, 6, 2>, 6, 2>(product, begin, end);
  }
}

void multiply_bf16(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  switch (product.tile_rows) {
    case 1:
      return multiply_tiles<Bf16Tile<1, 1>, 1, 1>(product, begin, end);
    case 2:
      return multiply_tiles<Bf16Tile<2, 1>, 2, 1>(product, begin, end);
    case 4:
      return multiply_tiles<Bf16Tile<4, 2>, 4, 2>(product, begin, end);
    case 6:
      return multiply_tiles<Bf16Tile<6, 2>, 6, 2>(product, begin, end);
    default:
      return multiply_tiles<Bf16Tile<8, 2>, 8, 2>(product, begin, end);
  }
}

bool layout_of(PanelKind kind, ActivationLayout& layout) {
  if (kind == PanelKind::kF32 || kind == PanelKind::kF16) return false;
  if (kind == PanelKind::kBF16) {
    layout = {.rounding = Rounding::kBf16};
  } else {
    layout = {.rounding = Rounding::kInt16, .block = panel_format(kind).block};
  }
  return true;
}

int most_rows(const ActivationLayout& layout) {
  return layout.rounding == Rounding::kBf16 ? kMostBf16Rows : kMostIntegerRows;
}

// One row of a tile: the pairs of each unit, 64 bytes at unit * tile_rows * 64.
struct TileRow {
  const float* x;  // null: zeros
  std::int64_t cols;
  int tile_rows;
  std::byte* pairs;
  float* scales;
  float* sums;
};

// Values [k, k + 16) of a row.
PAGODA_INLINE __m512 load_some(const TileRow& row, std::int64_t k) {
  const std::int64_t left = row.x ? row.cols - k : 0;
  if (left >= 16) return _mm512_loadu_ps(row.x + k);
  if (left <= 0) return _mm512_setzero_ps();
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << left) - 1), row.x + k);
}

void pack_bf16_row(const TileRow& row) {
  const std::int64_t units = padded_units(row.cols);
  for (std::int64_t unit = 0; unit < units; ++unit) {
    const __m512 low = load_some(row, unit * kUnit), high = load_some(row, unit * kUnit + 16);
    _mm512_store_si512(row.pairs + unit * row.tile_rows * kLineBytes,
                       (__m512i)_mm512_cvtne2ps_pbh(high, low));
  }
}

// Sixteen values as integers; returns their sum.
PAGODA_INLINE float pack_int16(__m512 x, float largest, std::byte* to) {
  const __m512 inverse = _mm512_set1_ps(largest > 0 ? 32767.0f / largest : 0.0f);
  const __m512i rounded = _mm512_cvtps_epi32(_mm512_mul_ps(x, inverse));
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(rounded));
  return static_cast<float>(_mm512_reduce_add_epi32(rounded));
}

PAGODA_INLINE float largest_of(__m512 x) {
  return _mm512_reduce_max_ps(_mm512_abs_ps(x));
}

void pack_int16_row(const TileRow& row, int block) {
  const std::int64_t units = padded_units(row.cols);
  const int rows = row.tile_rows;
  for (std::int64_t unit = 0; unit < units; ++unit) {
    const __m512 low = load_some(row, unit * kUnit), high = load_some(row, unit * kUnit + 16);
    std::byte* pairs = row.pairs + unit * rows * kLineBytes;
    float largest[2] = {largest_of(low), largest_of(high)};
    if (block == kUnit) {
      largest[0] = largest[1] = largest[0] > largest[1] ? largest[0] : largest[1];
    }
    const float sums[2] = {pack_int16(low, largest[0], pairs),
                           pack_int16(high, largest[1], pairs + 32)};
    const float scales[2] = {largest[0] / 32767.0f, largest[1] / 32767.0f};
    if (block == kUnit) {
      row.scales[unit * rows] = scales[0];
      row.sums[unit * rows] = scales[0] * (sums[0] + sums[1]);
      continue;
    }
    for (int half = 0; half < 2; ++half) {
      row.scales[(2 * unit + half) * rows] = scales[half];
      row.sums[(2 * unit + half) * rows] = scales[half] * sums[half];
    }
  }
}

void pack_tile(const ActivationLayout& layout, const TileSource& source, std::byte* tile) {
  const TileView view = view_of(tile, layout, source.tile_rows, source.cols);
  for (int r = 0; r < source.tile_rows; ++r) {
    const TileRow row = {.x = r < source.num_rows ? source.x + r * source.x_stride : nullptr,
                         .cols = source.cols,
                         .tile_rows = source.tile_rows,
                         .pairs = tile + r * kLineBytes,
                         .scales = const_cast<float*>(view.scales) + r,
                         .sums = const_cast<float*>(view.sums) + r};
    if (layout.rounding == Rounding::kBf16) {
      pack_bf16_row(row);
    } else {
      pack_int16_row(row, layout.block);
    }
  }
}

void multiply(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  switch (product.kind) {
    case PanelKind::kF32:
    case PanelKind::kF16:
      return;  // layout_of says so
    case PanelKind::kBF16:
      return multiply_bf16(product, begin, end);
#define PAGODA_MULTIPLY(kind) \
  case PanelKind::kind:       \
    return multiply_integers<PanelKind::kind>(product, begin, end);
      PAGODA_MULTIPLY(kQ8_0)
      PAGODA_MULTIPLY(kQ4_0)
      PAGODA_MULTIPLY(kQ4_1)
      PAGODA_MULTIPLY(kQ5_0)
      PAGODA_MULTIPLY(kQ5_1)
      PAGODA_MULTIPLY(kQ2_K)
      PAGODA_MULTIPLY(kQ3_K)
      PAGODA_MULTIPLY(kQ4_K)
      PAGODA_MULTIPLY(kQ5_K)
      PAGODA_MULTIPLY(kQ6_K)
      PAGODA_MULTIPLY(kIQ4_NL)
      PAGODA_MULTIPLY(kIQ4_XS)
      PAGODA_MULTIPLY(kAffine2)
      PAGODA_MULTIPLY(kAffine3)
      PAGODA_MULTIPLY(kAffine4)
      PAGODA_MULTIPLY(kAffine5)
      PAGODA_MULTIPLY(kAffine6)
      PAGODA_MULTIPLY(kAffine8)
#undef PAGODA_MULTIPLY
  }
}

constexpr LinearKernels kKernels = {.layout_of = layout_of,
                                    .most_rows = most_rows,
                                    .tile_bytes = tile_bytes,
                                    .pack_tile = pack_tile,
                                    .multiply = multiply};

}  // namespace

const LinearKernels* const kAvx512Kernels = &kKernels;

}  // namespace pagoda::cpu
