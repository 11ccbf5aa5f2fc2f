#include "ops/apply_logit_bias/logits_native.h"
#include "ops/apply_penalties/apply_penalties.h"

namespace pagoda::reference {

Tensor apply_penalties(Exec& exec, const Tensor& logits, const LogitEntries& entries,
                       const Tensor& output_counts, const PenaltyFactors& factors) {
  Tensor out = copy_of(exec, logits);
  for (std::int64_t e = 0; e < output_counts.extent(0); ++e) {
    const std::int32_t row = entries.rows.data<std::int32_t>()[e];
    const std::int32_t count = output_counts.data<std::int32_t>()[e];
    const float repetition = factors.repetition.data<float>()[row];
    const float frequency = factors.frequency.data<float>()[row];
    const float presence = factors.presence.data<float>()[row];
    change_logit(out, row * logits.extent(1) + entries.token_ids.data<std::int32_t>()[e],
                 [&](float x) {
                   x = x > 0 ? x / repetition : x * repetition;
                   if (count == 0) return x;
                   x -= frequency * static_cast<float>(count);
                   return x - presence;
                 });
  }
  return out;
}

}  // namespace pagoda::reference
