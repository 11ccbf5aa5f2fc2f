// Weights' codes, scales and minima as the AVX-512 products read them.
#pragma once

#include <immintrin.h>

#include "ops/linear/avx512_tile-inl.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kHalvesBytes = 2 * kPanelColumns;

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

// A panel is a stream that the hardware foresees too late, most of all where a group begins with a
// header (docs/performance.md has the figures). Few rows meet it once: it is fetched past the
// second and third level, which it would only fill, a tenth faster where the cores are on two
// chiplets.
constexpr int kFetchAhead = 8192;  // bytes
// Where lines are better fetched into the second level, every other one, 2 KB ahead, was best or as
// good as any for each format but those of 256 k a group, whose long headers break the stream: they
// want every line, and past the caches there too (Q6_K 56 instead of 19 GB/s, Q4_K 60 instead of
// 46).
constexpr int kSecondLevelAhead = 2048;
constexpr int kSecondLevelEvery = 2;
constexpr int kSuperAhead = 4096;
// Lines [kBegin, kEnd) of those that lie as far ahead.
template <PanelKind kKind, int kBegin, int kEnd>
PAGODA_INLINE void prefetch_ahead(const std::byte* unit, PrefetchLevel level) {
  for_all<kEnd, kBegin>([&](auto line) PAGODA_FLATTEN {
    if (level == PrefetchLevel::kSecond) {
      if constexpr (is_super(kKind)) {
        __builtin_prefetch(unit + kSuperAhead + kLineBytes * line, 0, 0);
      } else if constexpr (line % kSecondLevelEvery == 0) {
        __builtin_prefetch(unit + kSecondLevelAhead + kLineBytes * line, 0, 2);
      }
    } else {
      __builtin_prefetch(unit + kFetchAhead + kLineBytes * line, 0, 0);
    }
  });
}

// Units of a group that few rows meet, from the first on.
struct UnitsAt {
  const std::byte* group;
  int first;
  PrefetchLevel prefetch;
};

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

// Formats with a float minimum for each block of 32. Against 16-bit integers their codes are taken
// around the middle one, so that little is left to the minima.
constexpr bool has_float_minima(PanelKind kind) {
  return panel_format(kind).header == PanelHeader::kScalesMinima;
}
constexpr int middle_code(PanelKind kind) {
  return has_float_minima(kind) ? 1 << (panel_format(kind).code_bits() - 1) : 0;
}

// What each code stands for; bits above the code are whatever the shift left there.
struct CodeTable {
  alignas(kLineBytes) std::int16_t values[64];
};
template <PanelKind kKind>
constexpr CodeTable make_table() {
  CodeTable table = {};
  const int num_codes = 1 << (panel_format(kKind).code_bits() % 16);
  for (int i = 0; i < 64; ++i) {
    table.values[i] =
        static_cast<std::int16_t>(code_value(kKind, i % num_codes) - middle_code(kKind));
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
    if constexpr (kFormat.low_bits == 16) {
      return load_line(low + kLineBytes * kPair);
    } else if constexpr (kFormat.low_bits == 8) {
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

PAGODA_INLINE __m512i broadcast_word(const std::byte* word) {
  return _mm512_set1_epi32(*reinterpret_cast<const std::int32_t*>(word));
}

// Nibbles that stand for themselves less an offset.
constexpr bool has_plain_nibbles(PanelKind kind) {
  const PanelFormat format = panel_format(kind);
  return format.low_bits == 4 && format.high_bits == 0 && kind != PanelKind::kIQ4_NL &&
         kind != PanelKind::kIQ4_XS;
}

// What a block of k comes to in one panel and few rows of 16-bit x, exactly. Two chains of sums
// wait less for each other than one.
//
// Plain nibbles are taken where they lie, every other one times 16, which a shift of its chain
// takes back. A shift and a table for each would keep the units busy that a Zen 4 has two of: 32 k
// of Q4_0 took 35 cycles, now 28, of Q4_1 43, now 35.
template <PanelKind kKind, int kRows>
class FewRowsBlock {
 public:
  // `sums` are those of each row's x over the block.
  PAGODA_INLINE explicit FewRowsBlock(const float* sums) {
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      even_[r] = odd_[r] = _mm512_setzero_si512();
      if constexpr (kOffset != 0) {
        const __m512 offset = _mm512_set1_ps(-static_cast<float>(kOffset));
        even_[r] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_set1_ps(sums[r]), offset));
      }
    });
  }

  // Adds pair kPair of a unit, whose planes begin at `low` and `high`, x of each row at row_bytes.
  template <int kPair>
  PAGODA_INLINE void add(const PairReader<kKind>& reader, const std::byte* low,
                         const std::byte* high, const std::byte* x, int row_bytes) {
    __m512i w;
    if constexpr (kIsInPlace) {
      w = nibbles<kPair>(low);
    } else {
      w = reader.template pair<kPair>(low, high);
    }
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      const __m512i word = broadcast_word(x + r * row_bytes + 4 * kPair);
      __m512i& sum = kPair % 2 == 0 ? even_[r] : odd_[r];
      sum = _mm512_dpwssd_epi32(sum, w, word);
    });
  }

  PAGODA_INLINE __m512i sum(int row) const {
    return _mm512_add_epi32(even_[row], kIsInPlace ? _mm512_srai_epi32(odd_[row], 4) : odd_[row]);
  }

 private:
  static constexpr bool kIsInPlace = has_plain_nibbles(kKind);
  static constexpr int kOffset = kIsInPlace ? middle_code(kKind) - code_value(kKind, 0) : 0;

  template <int kPair>
  PAGODA_INLINE static __m512i nibbles(const std::byte* low) {
    const __m512i line = load_line(low + kLineBytes * (kPair / 4));
    const __m512i bytes = kPair % 4 < 2 ? line : _mm512_srli_epi16(line, 8);
    return _mm512_and_si512(bytes, _mm512_set1_epi16(kPair % 2 == 0 ? 0x0f : 0xf0));
  }

  __m512i even_[kRows], odd_[kRows];
};

// The scales and minima of a group's blocks, 16 columns each.
template <PanelKind kKind>
struct GroupNumbers {
  static constexpr PanelFormat kFormat = panel_format(kKind);
  static constexpr int kBlocks = kFormat.group / kFormat.block;
  // A minimum may be one for all.
  static constexpr int kMinima = !kFormat.has_minimum()                         ? 1
                                 : kFormat.header == PanelHeader::kScalesMinima ? 1
                                                                                : kBlocks;

  __m512 scales[kBlocks];
  __m512 minima[kMinima];
};

template <int kAt, int kCount>
PAGODA_INLINE __m512i bits_of(__m512i words) {
  const __m512i shifted = kAt > 0 ? _mm512_srli_epi32(words, kAt) : words;
  if constexpr (kAt + kCount == 32) return shifted;
  return _mm512_and_si512(shifted, _mm512_set1_epi32((1 << kCount) - 1));
}

struct SixBitNumbers {
  __m512i scale;
  __m512i minimum;
};
template <int kBlock>
PAGODA_INLINE SixBitNumbers six_bit_numbers(__m512i w0, __m512i w1, __m512i w2) {
  if constexpr (kBlock < 5) {
    return {bits_of<6 * kBlock, 6>(w0), bits_of<6 * kBlock, 6>(w1)};
  } else if constexpr (kBlock < 7) {
    return {bits_of<6 * (kBlock - 5), 6>(w2), bits_of<12 + 6 * (kBlock - 5), 6>(w2)};
  } else {
    const __m512i scale = _mm512_slli_epi32(bits_of<30, 2>(w0), 4);
    const __m512i minimum = _mm512_slli_epi32(bits_of<30, 2>(w1), 4);
    return {_mm512_or_si512(bits_of<24, 4>(w2), scale),
            _mm512_or_si512(bits_of<28, 4>(w2), minimum)};
  }
}

PAGODA_INLINE __m128i load_bytes(const std::byte* bytes) {
  return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
}

template <PanelKind kKind>
PAGODA_INLINE void read_numbers(const std::byte* group, GroupNumbers<kKind>& numbers) {
  using Numbers = GroupNumbers<kKind>;
  constexpr PanelHeader kHeader = Numbers::kFormat.header;
  const std::byte* integers = group + kLineBytes;
  if constexpr (kHeader == PanelHeader::kScales) {
    for_all<Numbers::kBlocks>(
        [&](auto b) PAGODA_FLATTEN { numbers.scales[b] = load_halves(group + b * kHalvesBytes); });
  } else if constexpr (kHeader == PanelHeader::kScalesMinima) {
    numbers.scales[0] = load_halves(group);
    numbers.minima[0] = load_halves(group + kHalvesBytes);
  } else if constexpr (kHeader == PanelHeader::kBytes) {
    const __m512 scale = load_halves(group);
    for_all<Numbers::kBlocks>([&](auto b) PAGODA_FLATTEN {
      const __m512i bytes = _mm512_cvtepi8_epi32(load_bytes(integers + b * kPanelColumns));
      numbers.scales[b] = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(bytes));
    });
  } else if constexpr (kHeader == PanelHeader::kNibbles) {
    const __m512 scale = load_halves(group);
    const __m512 minimum = _mm512_sub_ps(_mm512_setzero_ps(), load_halves(group + kHalvesBytes));
    for_all<Numbers::kBlocks>([&](auto b) PAGODA_FLATTEN {
      const __m512i both = _mm512_cvtepu8_epi32(load_bytes(integers + b * kPanelColumns));
      numbers.scales[b] = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(bits_of<0, 4>(both)));
      numbers.minima[b] = _mm512_mul_ps(minimum, _mm512_cvtepi32_ps(_mm512_srli_epi32(both, 4)));
    });
  } else {
    const __m512 scale = load_halves(group);
    const __m512 minimum = _mm512_sub_ps(_mm512_setzero_ps(), load_halves(group + kHalvesBytes));
    const __m512i w0 = load_line(integers), w1 = load_line(integers + kLineBytes);
    const __m512i w2 = load_line(integers + 2 * kLineBytes);
    for_all<Numbers::kBlocks>([&](auto b) PAGODA_FLATTEN {
      const SixBitNumbers of_block = six_bit_numbers<decltype(b)::kValue>(w0, w1, w2);
      numbers.scales[b] = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(of_block.scale));
      numbers.minima[b] = _mm512_mul_ps(minimum, _mm512_cvtepi32_ps(of_block.minimum));
    });
  }
}

template <PanelKind kKind>
PAGODA_INLINE void read_affine(const PanelProduct& product, const std::byte* panel,
                               std::int64_t unit, GroupNumbers<kKind>& numbers) {
  const std::byte* header = panel + unit / product.units_of_header * kLineBytes;
  if (product.header_is_bfloat16) {
    numbers.scales[0] = load_bfloat16(header);
    numbers.minima[0] = load_bfloat16(header + kHalvesBytes);
  } else {
    numbers.scales[0] = load_halves(header);
    numbers.minima[0] = load_halves(header + kHalvesBytes);
  }
}

// Powers' exponents above the least that each column has.
PAGODA_INLINE void read_powers(const std::byte* panel, const std::byte* group,
                               GroupNumbers<PanelKind::kInt14>& numbers) {
  const __m512i above = _mm512_sub_epi32(load_line(group), load_line(panel));
  numbers.scales[0] = _mm512_castsi512_ps(above);
}

// Group g of some panels side by side, the first one at `panel`, its group at `group`.
template <PanelKind kKind, int kPanels>
PAGODA_INLINE void read_panels(const PanelProduct& product, const std::byte* panel,
                               const std::byte* group, std::int64_t g,
                               GroupNumbers<kKind> (&numbers)[kPanels]) {
  for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
    if constexpr (panel_format(kKind).header == PanelHeader::kAffine) {
      read_affine(product, panel + p * product.panel_bytes, g, numbers[p]);
    } else if constexpr (panel_format(kKind).header == PanelHeader::kPowers) {
      read_powers(panel + p * product.panel_bytes, group + p * product.panel_bytes, numbers[p]);
    } else {
      read_numbers(group + p * product.panel_bytes, numbers[p]);
    }
  });
}

// Where a block's numbers of a tile's rows are, and a span's.
struct RowNumbers {
  const float* scales = nullptr;
  const float* sums = nullptr;
  const std::int32_t* integer_sums = nullptr;
  const std::byte* pairs = nullptr;
};

// A tile of rows from one unit on.
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
    const SuperView view = super_view_of(tile, kRows, product.cols);
    const std::int64_t group = unit / Loops::kUnitsOfSpan;
    return {x,
            {.scales = view.scales + group * kRows,
             .sums = block_sums_of(view, kRows, product.cols) + unit * kRows,
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
// Behind the last block of a span.
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

// A block's sum times the powers of a column's weights and of a row's x, whose exponents it takes.
// Of zero 2^-127 of their product is made, which no other sum feels.
PAGODA_INLINE __m512 raised(__m512 sum, __m512 of_column, const float* of_row) {
  const __m512i exponent = _mm512_set1_epi32(*reinterpret_cast<const std::int32_t*>(of_row));
  const __m512i raised = _mm512_add_epi32(_mm512_castps_si512(sum), _mm512_castps_si512(of_column));
  return _mm512_castsi512_ps(_mm512_add_epi32(raised, exponent));
}

// Brings sums of such blocks under the least powers of their columns and rows.
template <class Loops, int kRows, int kPanels>
PAGODA_INLINE void lower(const PanelProduct& product, std::int64_t first_row,
                         std::int64_t first_panel, __m512 (&sums)[kRows][kPanels]) {
  if constexpr (Loops::kHasPowers) {
    const std::byte* tile = product.tiles + first_row / kRows * product.tile_bytes;
    const float* of_rows = view_of(tile, product.layout, kRows, product.cols).sums;
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
      const std::byte* panel = product.panels + (first_panel + p) * product.panel_bytes;
      const __m512 of_columns = _mm512_getexp_ps(_mm512_castsi512_ps(load_line(panel)));
      for_all<kRows>([&](auto r) PAGODA_FLATTEN {
        const __m512 exponent = _mm512_add_ps(of_columns, _mm512_set1_ps(of_rows[r]));
        sums[r][p] = _mm512_scalef_ps(sums[r][p], exponent);
      });
    });
  }
}

// Adds block `at` of a group, whose exact sums are s, to the products, or to those of a span of
// x, still without its scale.
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

// Adds what a span of x came to under its scale, and begins the next one.
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

// Word kWord (four k) of a unit's codes as bytes without a sign.
template <PanelKind kKind, int kWord>
PAGODA_INLINE __m512i code_bytes(const std::byte* low) {
  if constexpr (panel_format(kKind).low_bits == 8) {
    const __m512i line = load_line(low + kLineBytes * kWord);
    if constexpr (kKind == PanelKind::kQ8_0) {
      return _mm512_xor_si512(line, _mm512_set1_epi8(-128));
    }
    return line;
  } else {
    __m512i line = load_line(low + kLineBytes * (kWord / 2));
    if constexpr (kWord % 2 == 1) line = _mm512_srli_epi16(line, 4);
    return _mm512_and_si512(line, _mm512_set1_epi8(15));
  }
}

// What those bytes are too high.
template <PanelKind kKind>
constexpr int kByteOffset = kKind == PanelKind::kQ8_0 ? 128 : -code_value(kKind, 0);

// The integer sums of a block of a tile of rows, before its products.
template <PanelKind kKind, bool kIsBytes, int kRows, int kPanels>
PAGODA_INLINE void start_block(const std::int32_t* integer_sums, __m512i (&s)[kRows][kPanels]) {
  for_all<kRows>([&](auto r) PAGODA_FLATTEN {
    __m512i start = _mm512_setzero_si512();
    if constexpr (kIsBytes && kByteOffset<kKind> != 0) {
      start = _mm512_set1_epi32(-kByteOffset<kKind> * integer_sums[r]);
    }
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN { s[r][p] = start; });
  });
}

// Kinds whose codes are bytes after a shift and a mask.
constexpr bool takes_bytes(PanelKind kind) {
  const PanelFormat format = panel_format(kind);
  return (format.low_bits == 4 || format.low_bits == 8) && format.high_bits == 0 &&
         format.block == kUnit && kind != PanelKind::kIQ4_NL && kind != PanelKind::kIQ4_XS;
}

// How a tile's loops are cut for a format and a rounding of x.
template <PanelKind kKind, Rounding kRounding>
struct TileLoops {
  static constexpr PanelFormat kFormat = panel_format(kKind);
  static constexpr bool kIsBytes = kRounding == Rounding::kInt8;
  static constexpr bool kHasSpans = has_spans(kRounding, kFormat.block);
  static constexpr bool kHasPowers = kFormat.header == PanelHeader::kPowers;
  // Minima as integers, 256 k at a time (avx512_minima-inl.h), or in float, block by block.
  static constexpr bool kHasGroups = !kIsBytes && has_float_minima(kKind);
  static constexpr bool kHasMinimum = kFormat.has_minimum() && !kHasGroups;
  static constexpr int kUnitsOfSpan = kHasGroups ? kSuperGroup / kUnit : cpu::kUnitsOfSpan;
  static constexpr int kRowBytes = kIsBytes ? kUnit : 2 * kUnit;  // of x, of a unit
  static constexpr int kUnitsOfBlock = kFormat.block > kUnit ? kFormat.block / kUnit : 1;
  static constexpr int kBlocksOfUnit = kFormat.block > kUnit ? 1 : kUnit / kFormat.block;
  static constexpr int kStepsOfBlock = (kIsBytes ? kUnit / 4 : kUnit / 2) / kBlocksOfUnit;
  static constexpr int kUnitsOfGroup = kFormat.group / kUnit;

  // Adds the exact products of step kStep of a unit, whose planes begin at `low` and `high`.
  template <int kStep, int kRows, int kPanels>
  PAGODA_INLINE static void add_step(const PairReader<kKind>& reader, const std::byte* low,
                                     const std::byte* high, std::int64_t panel_bytes,
                                     const std::byte* x, __m512i (&s)[kRows][kPanels]) {
    __m512i w[kPanels];
    for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
      const std::int64_t at = p * panel_bytes;
      if constexpr (kIsBytes) {
        w[p] = code_bytes<kKind, kStep>(low + at);
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
