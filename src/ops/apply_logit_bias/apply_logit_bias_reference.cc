#include "ops/apply_logit_bias/apply_logit_bias.h"
#include "ops/apply_logit_bias/logits_native.h"

namespace pagoda::reference {

Tensor apply_logit_bias(Exec& exec, const Tensor& logits, const LogitEntries& entries,
                        const Tensor& biases) {
  Tensor out = copy_of(exec, logits);
  for (std::int64_t e = 0; e < biases.extent(0); ++e) {
    const std::int64_t row = entries.rows.data<std::int32_t>()[e];
    const float bias = biases.data<float>()[e];
    change_logit(out, row * logits.extent(1) + entries.token_ids.data<std::int32_t>()[e],
                 [bias](float logit) { return logit + bias; });
  }
  return out;
}

}  // namespace pagoda::reference
