#include "ops/apply_penalties/apply_penalties.h"

namespace pagoda::cpu {

// Calls the reference. Requests on this backend do not use the op: the host samples for them, and
// its penalties read only the logits of seen tokens (sampling/host/sampler.h).
Tensor apply_penalties(Exec& exec, const Tensor& logits, const SeenTokenCounts& seen,
                       const PenaltyFactors& factors) {
  return reference::apply_penalties(exec, logits, seen, factors);
}

}  // namespace pagoda::cpu
