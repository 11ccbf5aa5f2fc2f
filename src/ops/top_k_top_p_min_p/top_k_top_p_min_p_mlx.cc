#include <mlx/ops.h>

#include <limits>

#include "ops/sample/rows_mlx.h"
#include "ops/top_k_top_p_min_p/top_k_top_p_min_p.h"

namespace pagoda::mlx {
namespace {

// How many of [rows, n] bool are true: [rows, 1] int32
mx::array count(const mx::array& flags) {
  return mx::sum(mx::astype(flags, mx::int32), 1, /*keepdims=*/true);
}

mx::array column(const Tensor& values) {
  return mx::expand_dims(array_of(values), 1);
}

// sorted: the row's logits, largest first. The least logit that min-p and top-k let through:
// [rows, 1]
mx::array floor_of(const mx::array& sorted, const RowFilters& filters) {
  const int vocab_size = sorted.shape(1);
  const mx::array max = mx::slice(sorted, {0, 0}, {sorted.shape(0), 1});
  const mx::array k = column(filters.top_k);
  const mx::array zero = mx::array(0);
  const mx::array is_off = mx::less_equal(k, zero);
  const mx::array at =
      mx::where(is_off, mx::array(vocab_size), mx::minimum(k, mx::array(vocab_size)));
  const mx::array kth = mx::take_along_axis(sorted, mx::subtract(at, mx::array(1)), 1);
  const mx::array nearest = mx::add(max, column(filters.min_p_margin));
  return mx::maximum(mx::maximum(nearest, kth), mx::array(std::numeric_limits<float>::lowest()));
}

// How many tokens of the sorted rows top-p keeps of the first num_left: [rows, 1] int32
mx::array num_kept_by_top_p(const mx::array& weights, const mx::array& num_left,
                            const RowFilters& filters) {
  const mx::array p = column(filters.top_p);
  const mx::array reached = mx::cumsum(weights, 1);
  const mx::array total = mx::sum(weights, 1, /*keepdims=*/true);
  const mx::array one = mx::array(std::int64_t{1});
  // fraction_of()
  const mx::array rounded = mx::astype(mx::round(mx::multiply(p, mx::array(0x1p31f))), mx::int64);
  const mx::array share = share_of(total, mx::maximum(rounded, one), mx::array(std::int64_t{0}));
  const mx::array before = count(mx::less(reached, mx::maximum(share, one)));
  const mx::array is_on = mx::less(p, mx::array(1.0f));
  return mx::where(is_on, mx::add(before, mx::array(1)), num_left);
}

}  // namespace

KeptTokens top_k_top_p_min_p(Exec& exec, const Tensor& logits, const Tensor& inverse_temperature,
                             const RowFilters& filters) {
  constexpr std::string_view kName = "top_k_top_p_min_p";
  const Shape rows = {logits.extent(0)};
  KeptTokens kept;
  mx::array least = mx::array(0.0f);
  mx::array num_ties = mx::array(0);
  kept.least = mlx_exec(exec).build(kName, DType::kFloat32, rows, [&] {
    const mx::array x = array_of(logits);
    const mx::array sorted = mx::negative(mx::sort(mx::negative(x), 1));
    const mx::array max = mx::slice(sorted, {0, 0}, {sorted.shape(0), 1});
    const mx::array is_left = mx::greater_equal(sorted, floor_of(sorted, filters));
    const mx::array weights = mx::where(is_left, weigh(sorted, max, column(inverse_temperature)),
                                        mx::array(std::int64_t{0}));
    const mx::array size = num_kept_by_top_p(weights, count(is_left), filters);
    // A row without tokens keeps none; its numbers must only be in range.
    const mx::array last =
        mx::clip(mx::subtract(size, mx::array(1)), mx::array(0), mx::array(x.shape(1) - 1));
    const mx::array value = mx::take_along_axis(sorted, last, 1);
    const mx::array larger = count(mx::greater(sorted, value));
    const mx::array has_token =
        mx::greater_equal(or_fault(mx::zeros({x.shape(0)}, mx::int32), x), mx::array(0));
    num_ties = mx::where(has_token, mx::squeeze(mx::subtract(size, larger), 1), mx::array(0));
    least = mx::where(has_token, mx::squeeze(value, 1), mx::array(0.0f));
    return least;
  });
  kept.num_ties = mlx_exec(exec).build(kName, DType::kInt32, rows, [&] { return num_ties; });
  return kept;
}

}  // namespace pagoda::mlx
