// The scales and minima of a panel's groups as floats.
#pragma once

#include <immintrin.h>

#include "backend/cpu/six_bit_words.h"
#include "ops/linear/avx512/codes-inl.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// The scales and minima of a group's blocks, 16 columns each.
template <PanelKind kKind>
struct GroupNumbers {
  static constexpr PanelFormat kFormat = panel_format(kKind);
  static constexpr int kBlocks = kFormat.group / kFormat.block;
  // One is enough if there are no minima, or if the whole group has one.
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

using Words = std::uint32_t __attribute__((vector_size(64)));

PAGODA_INLINE Words load_words(const std::byte* line) {
  return Words(load_line(line));
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
    const Words w0 = load_words(integers), w1 = load_words(integers + kLineBytes);
    const Words w2 = load_words(integers + 2 * kLineBytes);
    for_all<Numbers::kBlocks>([&](auto b) PAGODA_FLATTEN {
      const auto of_block = six_bit_numbers(w0, w1, w2, decltype(b)::kValue);
      numbers.scales[b] = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(__m512i(of_block.scale)));
      numbers.minima[b] = _mm512_mul_ps(minimum, _mm512_cvtepi32_ps(__m512i(of_block.minimum)));
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

// Reads the exponents of a unit's scales, which are powers of two: 2^(exponent - 128). Those of
// exponents 0 and 1, and twice that of 0, are subnormal numbers.
PAGODA_INLINE void read_exponents(const std::byte* panel, std::int64_t unit,
                                  GroupNumbers<PanelKind::kMXFP4>& numbers) {
  const __m512i exponents = _mm512_cvtepu8_epi32(load_bytes(panel + unit * kPanelColumns));
  const __m512i twice = _mm512_max_epu32(_mm512_slli_epi32(exponents, kMantissaBits),
                                         _mm512_set1_epi32(1 << (kMantissaBits - 1)));
  numbers.scales[0] = _mm512_mul_ps(_mm512_castsi512_ps(twice), _mm512_set1_ps(0.5f));
}

// Reads the exponents of powers, less the least exponent of each column.
PAGODA_INLINE void read_powers(const std::byte* panel, const std::byte* group,
                               GroupNumbers<PanelKind::kInt14>& numbers) {
  const __m512i above = _mm512_sub_epi32(load_line(group), load_line(panel));
  numbers.scales[0] = _mm512_castsi512_ps(above);
}

// Reads group g of kPanels neighbouring panels. The first panel is at `panel`, its group at
// `group`.
template <PanelKind kKind, int kPanels>
PAGODA_INLINE void read_panels(const PanelProduct& product, const std::byte* panel,
                               const std::byte* group, std::int64_t g,
                               GroupNumbers<kKind> (&numbers)[kPanels]) {
  for_all<kPanels>([&](auto p) PAGODA_FLATTEN {
    if constexpr (panel_format(kKind).header == PanelHeader::kAffine) {
      read_affine(product, panel + p * product.panel_bytes, g, numbers[p]);
    } else if constexpr (panel_format(kKind).header == PanelHeader::kExponents) {
      read_exponents(panel + p * product.panel_bytes, g, numbers[p]);
    } else if constexpr (panel_format(kKind).header == PanelHeader::kPowers) {
      read_powers(panel + p * product.panel_bytes, group + p * product.panel_bytes, numbers[p]);
    } else {
      read_numbers(group + p * product.panel_bytes, numbers[p]);
    }
  });
}

}  // namespace
}  // namespace pagoda::cpu
