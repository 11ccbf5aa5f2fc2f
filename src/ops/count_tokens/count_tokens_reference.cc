#include <algorithm>

#include "ops/count_tokens/count_tokens.h"

namespace pagoda::reference {

Tensor count_tokens(Exec&, const Tensor& counts, const Tensor& cleared,
                    const CountedTokens& tokens) {
  const std::int64_t vocab = counts.extent(1);
  for (std::int64_t i = 0; cleared.defined() && i < cleared.extent(0); ++i)
    std::fill_n(counts.data<std::int32_t>() + cleared.data<std::int32_t>()[i] * vocab, vocab, 0);
  for (std::int64_t e = 0; e < tokens.histograms.extent(0); ++e) {
    const std::int32_t histogram = tokens.histograms.data<std::int32_t>()[e];
    const std::int32_t token_id = tokens.token_ids.data<std::int32_t>()[e];
    if (histogram < 0 || token_id < 0) continue;
    std::int32_t& count = counts.data<std::int32_t>()[histogram * vocab + token_id];
    const std::int32_t times = tokens.times.data<std::int32_t>()[e];
    count = std::max(count, 1) + times;
    if (times < 0 && count <= 1) count = 0;
  }
  return counts;
}

}  // namespace pagoda::reference
