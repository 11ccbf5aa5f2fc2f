// A token mask: a bit per token. Token i may be chosen if bit i % 32 of word i / 32 is set; bits
// past the vocabulary have no meaning.
#pragma once

#include <cstdint>

namespace pagoda {

constexpr std::int64_t num_mask_words(std::int64_t vocab_size) {
  return (vocab_size + 31) / 32;
}

}  // namespace pagoda
