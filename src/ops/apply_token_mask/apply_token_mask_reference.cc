#include <limits>

#include "ops/apply_logit_bias/logits_native.h"
#include "ops/apply_token_mask/apply_token_mask.h"

namespace pagoda::reference {

Tensor apply_token_mask(Exec& exec, const Tensor& logits, const TokenMasks& masks) {
  Tensor out = copy_of(exec, logits);
  const std::int64_t vocab_size = logits.extent(1);
  for (std::int64_t row = 0; row < logits.extent(0); ++row) {
    const std::int32_t mask = masks.mask_of.data<std::int32_t>()[row];
    if (mask < 0) continue;
    const std::int32_t* words = masks.words.data<std::int32_t>() + mask * masks.words.extent(1);
    for (std::int64_t id = 0; id < vocab_size; ++id) {
      const auto word = static_cast<std::uint32_t>(words[id / 32]);
      if ((word >> (id % 32) & 1) != 0) continue;
      change_logit(out, row * vocab_size + id,
                   [](float) { return -std::numeric_limits<float>::infinity(); });
    }
  }
  return out;
}

}  // namespace pagoda::reference
