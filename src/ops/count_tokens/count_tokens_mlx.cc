// Counts are written as a cache's entries are (kv_write_mlx.h), which says why nobody sees the old
// ones change: as a cache of whole histograms where they are cleared, of single numbers else.
#include "ops/count_tokens/count_tokens.h"

#include <mlx/ops.h>

#include "backend/mlx/mlx_exec.h"
#include "ops/kv_write/kv_write_mlx.h"

namespace pagoda::mlx {
namespace {

mx::array clear(const mx::array& counts, const mx::array& cleared) {
  const int vocab = counts.shape(1);
  const mx::array cache = mx::reshape(counts, {counts.shape(0), 1, 1, vocab});
  return write_in_place(cache, mx::zeros({cleared.shape(0), 1, vocab}, mx::int32), cleared);
}

mx::array add(const mx::array& counts, const CountedTokens& tokens) {
  const int num_counts = counts.shape(0) * counts.shape(1);
  const mx::array histograms = array_of(tokens.histograms);
  const mx::array token_ids = array_of(tokens.token_ids);
  const mx::array zero = mx::array(0);
  const mx::array is_counted = mx::greater_equal(mx::minimum(histograms, token_ids), zero);
  const mx::array at = mx::add(mx::multiply(histograms, mx::array(counts.shape(1))), token_ids);
  const mx::array places = mx::where(is_counted, at, mx::array(-1));
  const mx::array old = mx::take(mx::flatten(counts), mx::maximum(places, zero), 0);
  const mx::array sums = mx::add(mx::maximum(old, mx::array(1)), array_of(tokens.times));
  return write_in_place(mx::reshape(counts, {num_counts, 1, 1, 1}),
                        mx::reshape(sums, {sums.shape(0), 1, 1}), places);
}

}  // namespace

Tensor count_tokens(Exec& exec, const Tensor& counts, const Tensor& cleared,
                    const CountedTokens& tokens) {
  return mlx_exec(exec).build("count_tokens", DType::kInt32, counts.shape(), [&] {
    const mx::Shape shape = to_mlx(counts.shape());
    mx::array written = array_of(counts);
    if (cleared.defined()) written = mx::reshape(clear(written, array_of(cleared)), shape);
    if (tokens.histograms.extent(0) > 0) written = mx::reshape(add(written, tokens), shape);
    return written;
  });
}

}  // namespace pagoda::mlx
