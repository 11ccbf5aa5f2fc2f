// Reads a panel's codes as pairs of 16-bit integers, or as bytes.
#pragma once

#include <immintrin.h>

#include "ops/linear/avx512/loads-inl.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// Returns the codes of pair kPair of a unit, each at bit kTo of its half-word. The other bits are
// arbitrary.
template <int kBits, int kPair, int kTo = 0>
PAGODA_INLINE __m512i shifted_codes(const std::byte* plane) {
  constexpr int kCodes = 16 / kBits;  // in a half-word
  constexpr int kShift = kBits * (kPair % kCodes) - kTo;
  const __m512i line = load_line(plane + kLineBytes * (kPair / kCodes));
  if constexpr (kShift > 0) return _mm512_srli_epi16(line, kShift);
  if constexpr (kShift < 0) return _mm512_slli_epi16(line, -kShift);
  return line;
}

// Returns whether a format has a float minimum for each block of 32. In products with 16-bit
// integers its middle code is subtracted from its codes, so that minima are small.
constexpr bool has_float_minima(PanelKind kind) {
  return panel_format(kind).header == PanelHeader::kScalesMinima;
}
constexpr int middle_code(PanelKind kind) {
  return has_float_minima(kind) ? 1 << (panel_format(kind).code_bits() - 1) : 0;
}

// The values of codes, repeated so that arbitrary bits above a code do not matter.
struct CodeTable {
  alignas(kLineBytes) std::int16_t values[64];
};
template <PanelKind kKind, int kMiddle>
constexpr CodeTable make_table() {
  CodeTable table = {};
  const int num_codes = 1 << (panel_format(kKind).code_bits() % 16);
  for (int i = 0; i < 64; ++i) {
    table.values[i] = static_cast<std::int16_t>(code_value(kKind, i % num_codes) - kMiddle);
  }
  return table;
}

// Reads pairs of codes of a panel as 16 x 2 integers of 16 bits, minus kMiddle.
template <PanelKind kKind, int kMiddle = middle_code(kKind)>
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
  static constexpr CodeTable kTable = make_table<kKind, kMiddle>();

  template <int kPair>
  PAGODA_INLINE static __m512i byte_pair(const std::byte* low) {
    __m512i line = load_line(low + kLineBytes * (kPair / 2));
    if constexpr (kMiddle != 0) {
      static_assert(kMiddle == 128);
      line = _mm512_xor_si512(line, _mm512_set1_epi8(-128));
    }
    if constexpr (kKind == PanelKind::kQ8_0 || kMiddle != 0) {
      if constexpr (kPair % 2 == 1) return _mm512_srai_epi16(line, 8);
      return _mm512_srai_epi16(_mm512_slli_epi16(line, 8), 8);
    } else {
      if constexpr (kPair % 2 == 1) return _mm512_srli_epi16(line, 8);
      return _mm512_and_si512(line, _mm512_set1_epi16(255));
    }
  }

  __m512i first_, second_;
};

// Returns whether codes are nibbles whose value is the nibble minus a constant.
constexpr bool has_plain_nibbles(PanelKind kind) {
  const PanelFormat format = panel_format(kind);
  return format.low_bits == 4 && format.high_bits == 0 && !has_levels(kind);
}

template <int kBy>
PAGODA_INLINE __m512i shifted(__m512i half_words) {
  if constexpr (kBy > 0) return _mm512_slli_epi16(half_words, kBy);
  if constexpr (kBy < 0) return _mm512_srli_epi16(half_words, -kBy);
  return half_words;
}

// Returns the bits that word kWord of a unit's codes has in the high plane, from bit 4 of each byte
// on. The bits above the code, and below bit 4, are arbitrary.
template <PanelKind kKind, int kWord>
PAGODA_INLINE __m512i high_bits_of_bytes(const std::byte* high) {
  constexpr int kBits = panel_format(kKind).high_bits;
  constexpr int kCodes = 32 / kBits;  // in a column's word
  constexpr int kFirst =
      kWord / 2 * 8 + kWord % 2 * 2;  // k of the first byte, 4 less than the second's
  constexpr int kBit = kBits * (kFirst % kCodes / 2);
  const __m512i line = load_line(high + kLineBytes * (kFirst / kCodes));
  return _mm512_ternarylogic_epi32(_mm512_set1_epi16(0xff), shifted<4 - kBit>(line),
                                   shifted<12 - kBit - 2 * kBits>(line), 0xca);  // mask ? a : b
}

// A format's levels plus 128, repeated so that bits above a code do not matter.
struct RaisedLevels {
  alignas(kLineBytes) std::uint8_t values[64];
};
constexpr RaisedLevels make_raised_levels(PanelKind kind) {
  RaisedLevels levels = {};
  for (int i = 0; i < 64; ++i) {
    levels.values[i] = static_cast<std::uint8_t>(code_value(kind, i % 16) + 128);
  }
  return levels;
}
template <PanelKind kKind>
constexpr RaisedLevels kRaisedLevels = make_raised_levels(kKind);

// Returns word kWord (four k) of a unit's codes as unsigned bytes. Codes have four bits or more in
// their low plane.
template <PanelKind kKind, int kWord>
PAGODA_INLINE __m512i code_bytes(const std::byte* low, const std::byte* high) {
  constexpr PanelFormat kFormat = panel_format(kKind);
  if constexpr (kFormat.low_bits == 8) {
    const __m512i line = load_line(low + kLineBytes * kWord);
    if constexpr (kKind == PanelKind::kQ8_0) {
      return _mm512_xor_si512(line, _mm512_set1_epi8(-128));
    }
    return line;
  } else {
    constexpr int kShift = kWord % 2 * 4;
    const __m512i line = shifted<-kShift>(load_line(low + kLineBytes * (kWord / 2)));
    const __m512i nibble = _mm512_set1_epi8(15);
    if constexpr (has_levels(kKind)) {
      return _mm512_permutexvar_epi8(line, _mm512_load_si512(kRaisedLevels<kKind>.values));
    } else if constexpr (kFormat.high_bits > 0) {
      const __m512i above = high_bits_of_bytes<kKind, kWord>(high);
      const __m512i codes = _mm512_ternarylogic_epi32(nibble, line, above, 0xca);
      return _mm512_and_si512(codes, _mm512_set1_epi8((1 << kFormat.code_bits()) - 1));
    } else {
      return _mm512_and_si512(line, nibble);
    }
  }
}

// Returns by how much the bytes of code_bytes() are larger than the codes' values.
constexpr int byte_offset(PanelKind kind) {
  return kind == PanelKind::kQ8_0 || has_levels(kind) ? 128 : -code_value(kind, 0);
}

// Returns whether tiles of one or two rows store x as planes of bytes. A lookup of levels as bytes
// takes half as many instructions as one of words.
constexpr bool meets_planes(PanelKind kind) {
  return has_levels(kind) && panel_format(kind).block == kUnit && panel_format(kind).group < 256;
}

// Returns whether codes become bytes by a shift and a mask, in blocks of 32 k.
constexpr bool takes_bytes(PanelKind kind) {
  const PanelFormat format = panel_format(kind);
  return (format.low_bits == 4 || format.low_bits == 8) && format.high_bits == 0 &&
         format.block == kUnit && !has_levels(kind);
}

}  // namespace
}  // namespace pagoda::cpu
