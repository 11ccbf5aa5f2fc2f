#include <algorithm>

#include "ops/resolve_tokens/resolve_tokens.h"

namespace pagoda::reference {

Tensor resolve_tokens(Exec& exec, const Tensor& token_ids, const Tensor& token_source,
                      const Tensor& drawn) {
  Tensor out = exec.allocate(DType::kInt32, token_ids.shape());
  for (std::int64_t t = 0; t < token_ids.extent(0); ++t) {
    const std::int32_t source = token_source.data<std::int32_t>()[t];
    out.data<std::int32_t>()[t] = source < 0 ? token_ids.data<std::int32_t>()[t]
                                             : std::max(drawn.data<std::int32_t>()[source], 0);
  }
  return out;
}

}  // namespace pagoda::reference
