#include "ops/resolve_tokens/resolve_tokens.h"

namespace pagoda::cpu {

// A few integers: the definition is fast enough.
Tensor resolve_tokens(Exec& exec, const Tensor& token_ids, const Tensor& token_source,
                      const Tensor& drawn) {
  return reference::resolve_tokens(exec, token_ids, token_source, drawn);
}

}  // namespace pagoda::cpu
