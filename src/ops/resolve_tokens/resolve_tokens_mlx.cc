#include <mlx/ops.h>

#include "backend/mlx/mlx_exec.h"
#include "ops/resolve_tokens/resolve_tokens.h"

namespace pagoda::mlx {

Tensor resolve_tokens(Exec& exec, const Tensor& token_ids, const Tensor& token_source,
                      const Tensor& drawn) {
  return mlx_exec(exec).build("resolve_tokens", DType::kInt32, token_ids.shape(), [&] {
    const mx::array zero(0);
    const mx::array source = array_of(token_source);
    const mx::array ids = mx::take(array_of(drawn), mx::maximum(source, zero), 0);
    return mx::where(mx::less(source, zero), array_of(token_ids), mx::maximum(ids, zero));
  });
}

}  // namespace pagoda::mlx
