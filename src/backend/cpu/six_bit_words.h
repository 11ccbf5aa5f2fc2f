// The six-bit words of Q4_K's and Q5_K's blocks. All kernels read them with these functions
// (panel_format.h draws the words).
#pragma once

#include <cstdint>

namespace pagoda::cpu {

// The six-bit integers of a block's scale and minimum, of one column or of a vector of columns.
template <class Word>
struct SixBitNumbers {
  Word scale;
  Word minimum;
};

// Returns the integers of block `b`, in [0, 8), from words 0, 1 and 2. A Word is a std::uint32_t,
// or a compiler's vector of them (vector_size).
template <class Word>
__attribute__((always_inline)) inline SixBitNumbers<Word> six_bit_numbers(Word w0, Word w1, Word w2,
                                                                          std::uint32_t b) {
  if (b < 5) return {w0 >> (6 * b) & 63, w1 >> (6 * b) & 63};
  if (b < 7) return {w2 >> (6 * b - 30) & 63, w2 >> (6 * b - 18) & 63};
  return {(w2 >> 24 & 15) | w0 >> 30 << 4, w2 >> 28 | w1 >> 30 << 4};
}

}  // namespace pagoda::cpu
