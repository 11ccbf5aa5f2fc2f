#include "ops/apply_penalties/apply_penalties.h"

namespace pagoda::cpu {

// Calls the reference. Where this backend samples, nothing waits for the host, whose sampler looks
// only at the seen tokens (sampling/host/sampler.h).
Tensor apply_penalties(Exec& exec, const Tensor& logits, const SeenTokenCounts& seen,
                       const PenaltyFactors& factors) {
  return reference::apply_penalties(exec, logits, seen, factors);
}

}  // namespace pagoda::cpu
