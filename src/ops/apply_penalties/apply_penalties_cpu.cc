#include "ops/apply_penalties/apply_penalties.h"

namespace pagoda::cpu {

// A copy and a few elements, as apply_logit_bias.
Tensor apply_penalties(Exec& exec, const Tensor& logits, const LogitEntries& entries,
                       const Tensor& output_counts, const PenaltyFactors& factors) {
  return reference::apply_penalties(exec, logits, entries, output_counts, factors);
}

}  // namespace pagoda::cpu
