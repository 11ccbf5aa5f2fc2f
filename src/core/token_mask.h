// A token mask: a bit a token. Token i may be chosen where bit i % 32 of word i / 32 is set; bits
// past the vocabulary mean nothing.
#pragma once

#include <cstdint>

namespace pagoda {

constexpr std::int64_t num_mask_words(std::int64_t vocab_size) {
  return (vocab_size + 31) / 32;
}

}  // namespace pagoda
