#include "ops/sample/sample.h"

#include <mlx/ops.h>

#include "ops/sample/rows_mlx.h"

namespace pagoda::mlx {
namespace {

mx::array column(const Tensor& values) {
  return mx::expand_dims(array_of(values), 1);
}

// Returns which tokens of x are kept: [rows, vocab] bool.
mx::array is_kept(const mx::array& x, const KeptTokens& kept) {
  const mx::array least = column(kept.least);
  const mx::array ties = mx::equal(x, least);
  const mx::array tie = mx::cumsum(mx::astype(ties, mx::int32), 1);
  const mx::array is_early = mx::less_equal(tie, column(kept.num_ties));
  return mx::logical_or(mx::greater(x, least), mx::logical_and(ties, is_early));
}

// One of the two int64 numbers of each row's uniform: [rows, 1]
mx::array half_of(const Tensor& uniforms, int half) {
  return mx::astype(array_of(uniforms.slice(1, half, half + 1)), mx::int64);
}

}  // namespace

Tensor sample(Exec& exec, const Tensor& logits, const SampleArgs& args) {
  KeptTokens kept;
  if (args.filters != nullptr)
    kept = mlx::top_k_top_p_min_p(exec, logits, args.inverse_temperature, *args.filters);
  return mlx_exec(exec).build("sample", DType::kInt32, {logits.extent(0)}, [&] {
    const mx::array x = array_of(logits);
    const mx::array inverse_temperature = column(args.inverse_temperature);
    const mx::array is_greedy =
        mx::equal(inverse_temperature, mx::array(kGreedyInverseTemperature));
    // A greedy row's weights are of no use, but must be numbers.
    mx::array weights = weigh(x, mx::max(x, 1, /*keepdims=*/true),
                              mx::where(is_greedy, mx::array(0.0f), inverse_temperature));
    if (args.filters != nullptr)
      weights = mx::where(is_kept(x, kept), weights, mx::array(std::int64_t{0}));
    const mx::array target = share_of(mx::sum(weights, 1, /*keepdims=*/true),
                                      half_of(args.uniforms, 0), half_of(args.uniforms, 1));
    const mx::array is_before = mx::less_equal(mx::cumsum(weights, 1), target);
    const mx::array drawn = mx::sum(mx::astype(is_before, mx::int32), 1);
    const mx::array best = mx::astype(mx::argmax(x, 1), mx::int32);
    return or_fault(mx::where(mx::squeeze(is_greedy, 1), best, drawn), x);
  });
}

}  // namespace pagoda::mlx
