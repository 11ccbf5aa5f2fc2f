// The sums over a block of k, for one panel and few rows.
#pragma once

#include <immintrin.h>

#include "ops/linear/avx512/codes-inl.h"
#include "ops/linear/avx512/prefetch-inl.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// Computes the exact sum over a block of k, for one panel and few rows of 16-bit x. There are two
// chains of sums, because instructions of a single chain would wait for each other.
//
// Plain nibbles are masked where they are. Every other one is 16 times too large, so its chain is
// shifted back at the end. Shifting each and looking it up in a table would occupy the only two
// units of a Zen 4 that can: 32 k of Q4_0 took 35 cycles instead of 28, of Q4_1 43 instead of 35.
template <PanelKind kKind, int kRows, int kMiddle = middle_code(kKind)>
class FewRowsBlock {
 public:
  // Begins a block. `sums` are the sums of each row's x over the block.
  PAGODA_INLINE explicit FewRowsBlock(const float* sums) {
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      even_[r] = odd_[r] = _mm512_setzero_si512();
      if constexpr (kOffset != 0) {
        const __m512 offset = _mm512_set1_ps(-static_cast<float>(kOffset));
        even_[r] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_set1_ps(sums[r]), offset));
      }
    });
  }

  // Adds pair kPair of a unit. Its planes begin at `low` and `high`, and rows of x are row_bytes
  // apart.
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
