#include "ops/log_probs/log_probs.h"

#include <mlx/ops.h>

#include <limits>
#include <vector>

#include "ops/argmax/argmax.h"
#include "ops/sample/rows_mlx.h"

namespace pagoda::mlx {
namespace {

struct Rows {
  mx::array x;            // [n, vocab] float32
  mx::array has_token;    // [n, 1] bool
  mx::array log_sum_exp;  // [n, 1] float32
  mx::array ids;          // [n, 1] int32, 0 where a row has no token
};

Rows rows_of(const Tensor& logits, const Tensor& token_ids, const LogProbsArgs& args) {
  mx::array x = array_of(logits);
  if (args.rows != nullptr) x = mx::take(x, array_of(*args.rows), 0);
  x = mx::astype(x, mx::float32);
  const mx::array ids = array_of(token_ids);
  const mx::array zero = mx::array(0);
  const mx::array has_token = mx::expand_dims(mx::greater_equal(or_fault(ids, x), zero), 1);
  return {.x = x,
          .has_token = has_token,
          .log_sum_exp = mx::logsumexp(x, 1, /*keepdims=*/true),
          .ids = mx::expand_dims(mx::maximum(ids, zero), 1)};
}

// `value` [n, 1] where the row has a token, else `other`: [n]
mx::array where_token(const Rows& rows, const mx::array& value, const mx::array& other) {
  return mx::squeeze(mx::where(rows.has_token, value, other), 1);
}

// The largest logit after the largest is taken away: num_top columns of ids and log-probabilities.
// argmax takes the lowest id among equals, which a device's sort may not.
struct Top {
  std::vector<mx::array> ids;
  std::vector<mx::array> logprobs;
};

Top top_of(const Rows& rows, int num_top) {
  const mx::array infinity = mx::array(std::numeric_limits<float>::infinity());
  const mx::array lowest = mx::negative(infinity);
  const mx::array places = mx::expand_dims(mx::arange(rows.x.shape(1), mx::int32), 0);
  mx::array left = rows.x;
  Top top;
  for (int i = 0; i < num_top; ++i) {
    const mx::array id = mx::astype(mx::argmax(left, 1, /*keepdims=*/true), mx::int32);
    const mx::array logit = mx::take_along_axis(left, id, 1);
    const mx::array is_token = mx::logical_and(rows.has_token, mx::greater(logit, lowest));
    top.ids.push_back(mx::where(is_token, id, mx::array(-1)));
    top.logprobs.push_back(
        mx::where(is_token, mx::subtract(logit, rows.log_sum_exp), mx::array(0.0f)));
    left = mx::where(mx::equal(places, id), lowest, left);
  }
  return top;
}

}  // namespace

LogProbs log_probs(Exec& exec, const Tensor& logits, const Tensor& token_ids,
                   const LogProbsArgs& args) {
  MlxExec& mlx = mlx_exec(exec);
  const Shape shape = {token_ids.extent(0)};
  const Shape top_shape = {token_ids.extent(0), args.num_top};
  LogProbs result;
  const auto build = [&](DType dtype, const Shape& of, const auto& body) {
    return mlx.build("log_probs", dtype, of, body);
  };
  std::vector<Rows> rows;  // empty where building them failed
  Top top;
  result.chosen = build(DType::kFloat32, shape, [&] {
    rows.push_back(rows_of(logits, token_ids, args));
    const mx::array logit = mx::take_along_axis(rows[0].x, rows[0].ids, 1);
    return where_token(rows[0], mx::subtract(logit, rows[0].log_sum_exp), mx::array(0.0f));
  });
  result.rank = build(DType::kInt32, shape, [&] {
    const mx::array logit = mx::take_along_axis(rows.at(0).x, rows.at(0).ids, 1);
    const mx::array larger = mx::astype(mx::greater(rows.at(0).x, logit), mx::int32);
    const mx::array rank = mx::add(mx::sum(larger, 1, /*keepdims=*/true), mx::array(1));
    return where_token(rows.at(0), rank, mx::array(0));
  });
  if (args.num_top == 0) return result;
  result.top_ids = build(DType::kInt32, top_shape, [&] {
    top = top_of(rows.at(0), args.num_top);
    return mx::concatenate(top.ids, 1);
  });
  result.top_logprobs =
      build(DType::kFloat32, top_shape, [&] { return mx::concatenate(top.logprobs, 1); });
  return result;
}

}  // namespace pagoda::mlx
