#include "ops/apply_penalties/apply_penalties.h"

#include <mlx/ops.h>

#include "backend/mlx/metal_kernel.h"
#include "backend/mlx/mlx_exec.h"
#include "ops/metal_bodies.h"

namespace pagoda::mlx {
namespace {

mx::array on_gpu(const Tensor& logits, const SeenTokenCounts& seen, const PenaltyFactors& factors) {
  static const MetalKernel kernel =
      make_metal_kernel("pagoda_apply_penalties",
                        {"logits", "counts", "histogram_of", "repetition", "frequency", "presence"},
                        kApplyPenaltiesMetal);
  constexpr int kNumThreads = 256;
  const mx::array x = array_of(logits);
  return run_metal_kernel(kernel,
                          {.inputs = {x, array_of(seen.counts), array_of(seen.histogram_of),
                                      array_of(factors.repetition), array_of(factors.frequency),
                                      array_of(factors.presence)},
                           .shape = x.shape(),
                           .dtype = x.dtype(),
                           .num_threads = kNumThreads,
                           .num_groups_x = (x.shape(1) + kNumThreads - 1) / kNumThreads,
                           .num_groups_y = x.shape(0),
                           .constants = {{"T", x.dtype()}, {"NUM_THREADS", kNumThreads}}});
}

// A pass over the vocabulary each operation.
mx::array composed(const Tensor& logits, const SeenTokenCounts& seen,
                   const PenaltyFactors& factors) {
  const auto column = [](const Tensor& of_row) { return mx::expand_dims(array_of(of_row), 1); };
  const mx::array x = array_of(logits);
  const mx::array logit = mx::astype(x, mx::float32);
  const mx::array zero = mx::array(0);
  const mx::array histogram_of = column(seen.histogram_of);
  const mx::array stored =
      mx::take(array_of(seen.counts), mx::maximum(mx::squeeze(histogram_of, 1), zero), 0);
  const mx::array counts = mx::where(mx::less(histogram_of, zero), zero, stored);  // [rows, vocab]
  const mx::array repetition = column(factors.repetition);
  const mx::array repeated =
      mx::where(mx::greater(logit, mx::array(0.0f)), mx::divide(logit, repetition),
                mx::multiply(logit, repetition));
  const mx::array times = mx::astype(mx::subtract(counts, mx::array(1)), mx::float32);
  const mx::array frequency = mx::multiply(column(factors.frequency), times);
  const mx::array written =
      mx::subtract(mx::subtract(repeated, frequency), column(factors.presence));
  const mx::array changed = mx::where(mx::greater(counts, mx::array(1)), written, repeated);
  return mx::where(mx::greater(counts, zero), mx::astype(changed, x.dtype()), x);
}

}  // namespace

Tensor apply_penalties(Exec& exec, const Tensor& logits, const SeenTokenCounts& seen,
                       const PenaltyFactors& factors) {
  return mlx_exec(exec).build("apply_penalties", logits.dtype(), logits.shape(), [&] {
    return mlx_exec(exec).uses_metal_kernels() ? on_gpu(logits, seen, factors)
                                               : composed(logits, seen, factors);
  });
}

}  // namespace pagoda::mlx
