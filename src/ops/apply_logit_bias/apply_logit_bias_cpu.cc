#include "ops/apply_logit_bias/apply_logit_bias.h"

namespace pagoda::cpu {

// A copy and a few elements: there is nothing to be faster at.
Tensor apply_logit_bias(Exec& exec, const Tensor& logits, const LogitEntries& entries,
                        const Tensor& biases) {
  return reference::apply_logit_bias(exec, logits, entries, biases);
}

}  // namespace pagoda::cpu
