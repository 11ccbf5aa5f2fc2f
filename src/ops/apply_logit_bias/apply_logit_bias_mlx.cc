#include "ops/apply_logit_bias/apply_logit_bias.h"

#include <mlx/ops.h>

#include "backend/mlx/mlx_exec.h"

namespace pagoda::mlx {

Tensor apply_logit_bias(Exec& exec, const Tensor& logits, const LogitEntries& entries,
                        const Tensor& biases) {
  return mlx_exec(exec).build("apply_logit_bias", logits.dtype(), logits.shape(), [&] {
    if (biases.extent(0) == 0) return array_of(logits);
    const mx::array wide = mx::astype(array_of(logits), mx::float32);
    const mx::array added = mx::reshape(array_of(biases), {-1, 1, 1});
    const mx::array sums =
        mx::scatter_add(wide, {array_of(entries.rows), array_of(entries.token_ids)}, added, {0, 1});
    return mx::astype(sums, to_mlx(logits.dtype()));
  });
}

}  // namespace pagoda::mlx
