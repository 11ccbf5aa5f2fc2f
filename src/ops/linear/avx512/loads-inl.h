// Loads from panels and from rows of x.
#pragma once

#include <immintrin.h>

#include "ops/linear/avx512/tile-inl.h"
#include "ops/linear/linear_kernels.h"

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

PAGODA_INLINE __m512i broadcast_word(const std::byte* word) {
  return _mm512_set1_epi32(*reinterpret_cast<const std::int32_t*>(word));
}

}  // namespace
}  // namespace pagoda::cpu
