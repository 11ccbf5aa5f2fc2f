#include "ops/apply_penalties/apply_penalties.h"

namespace pagoda::cpu {

// A copy, a pass over the counts and a few elements. Where this backend samples, nothing waits for
// the host, whose sampler looks at the seen tokens alone (sampling/host/sampler.h).
Tensor apply_penalties(Exec& exec, const Tensor& logits, const SeenTokenCounts& seen,
                       const PenaltyFactors& factors) {
  return reference::apply_penalties(exec, logits, seen, factors);
}

}  // namespace pagoda::cpu
