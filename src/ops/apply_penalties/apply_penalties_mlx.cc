#include "ops/apply_penalties/apply_penalties.h"

#include <mlx/ops.h>

#include "backend/mlx/mlx_exec.h"

namespace pagoda::mlx {

Tensor apply_penalties(Exec& exec, const Tensor& logits, const LogitEntries& entries,
                       const Tensor& output_counts, const PenaltyFactors& factors) {
  return mlx_exec(exec).build("apply_penalties", logits.dtype(), logits.shape(), [&] {
    if (output_counts.extent(0) == 0) return array_of(logits);
    const mx::array x = array_of(logits);
    const mx::array rows = array_of(entries.rows);
    const mx::array ids = array_of(entries.token_ids);
    const mx::array counts = array_of(output_counts);
    const auto of_entry = [&](const Tensor& factor) { return mx::take(array_of(factor), rows, 0); };
    const mx::array zero = mx::array(0.0f);
    const mx::array seen = mx::gather(x, {rows, ids}, {0, 1}, {1, 1});  // [n, 1, 1]
    const mx::array logit = mx::astype(mx::flatten(seen), mx::float32);
    const mx::array repetition = of_entry(factors.repetition);
    const mx::array repeated = mx::where(mx::greater(logit, zero), mx::divide(logit, repetition),
                                         mx::multiply(logit, repetition));
    const mx::array frequency =
        mx::multiply(of_entry(factors.frequency), mx::astype(counts, mx::float32));
    const mx::array written =
        mx::subtract(mx::subtract(repeated, frequency), of_entry(factors.presence));
    const mx::array changed = mx::where(mx::greater(counts, mx::array(0)), written, repeated);
    const mx::array updates = mx::reshape(mx::astype(changed, x.dtype()), {-1, 1, 1});
    return mx::scatter(x, {rows, ids}, updates, {0, 1});
  });
}

}  // namespace pagoda::mlx
