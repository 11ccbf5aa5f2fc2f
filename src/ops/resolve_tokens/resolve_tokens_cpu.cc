#include "ops/resolve_tokens/resolve_tokens.h"

namespace pagoda::cpu {

// Calls the reference, which is fast enough for a few integers.
Tensor resolve_tokens(Exec& exec, const Tensor& token_ids, const Tensor& token_source,
                      const Tensor& drawn) {
  return reference::resolve_tokens(exec, token_ids, token_source, drawn);
}

}  // namespace pagoda::cpu
