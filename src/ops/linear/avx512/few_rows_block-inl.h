// A block of k of one panel and few rows.
#pragma once

#include <immintrin.h>

#include "ops/linear/avx512/codes-inl.h"
#include "ops/linear/avx512/prefetch-inl.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// Computes the sum of a block of k in one panel and few rows of 16-bit x, exactly. Two chains of
// sums wait less for each other than one.
//
// Plain nibbles are taken where they lie, every other one times 16, which a shift of its chain
// takes back. A shift and a table for each would keep the units busy that a Zen 4 has two of: 32 k
// of Q4_0 took 35 cycles, now 28, of Q4_1 43, now 35.
template <PanelKind kKind, int kRows, int kMiddle = middle_code(kKind)>
class FewRowsBlock {
 public:
  // Begins a block; `sums` are those of each row's x over the block.
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
  PAGODA_INLINE void add(const PairReader<kKind, kMiddle>& reader, const std::byte* low,
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
  static constexpr int kOffset = kIsInPlace ? kMiddle - code_value(kKind, 0) : 0;

  template <int kPair>
  PAGODA_INLINE static __m512i nibbles(const std::byte* low) {
    const __m512i line = load_line(low + kLineBytes * (kPair / 4));
    const __m512i bytes = kPair % 4 < 2 ? line : _mm512_srli_epi16(line, 8);
    return _mm512_and_si512(bytes, _mm512_set1_epi16(kPair % 2 == 0 ? 0x0f : 0xf0));
  }

  __m512i even_[kRows], odd_[kRows];
};

}  // namespace
}  // namespace pagoda::cpu
