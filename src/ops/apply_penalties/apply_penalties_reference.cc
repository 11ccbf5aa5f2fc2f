#include "ops/apply_logit_bias/logits_native.h"
#include "ops/apply_penalties/apply_penalties.h"

namespace pagoda::reference {

Tensor apply_penalties(Exec& exec, const Tensor& logits, const SeenTokenCounts& seen,
                       const PenaltyFactors& factors) {
  Tensor out = copy_of(exec, logits);
  const std::int64_t vocab = logits.extent(1);
  for (std::int64_t row = 0; row < logits.extent(0); ++row) {
    const std::int32_t histogram = seen.histogram_of.data<std::int32_t>()[row];
    if (histogram < 0) continue;
    const std::int32_t* const counts = seen.counts.data<std::int32_t>() + histogram * vocab;
    const float repetition = factors.repetition.data<float>()[row];
    const float frequency = factors.frequency.data<float>()[row];
    const float presence = factors.presence.data<float>()[row];
    for (std::int64_t token = 0; token < vocab; ++token) {
      if (counts[token] == 0) continue;
      const std::int32_t times = counts[token] - 1;
      change_logit(out, row * vocab + token, [&](float x) {
        x = x > 0 ? x / repetition : x * repetition;
        if (times == 0) return x;
        x -= frequency * static_cast<float>(times);
        return x - presence;
      });
    }
  }
  return out;
}

}  // namespace pagoda::reference
