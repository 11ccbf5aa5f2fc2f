#include "ops/log_probs/log_probs.h"

#include <mlx/ops.h>

#include <limits>
#include <vector>

#include "draw/token_weight.h"
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

// Returns the log-sum-exp [n, 1] of x [n, vocab]. It is summed as whole numbers, as weights are
// (draw/token_weight.h): exactly and in any order. A float32 sum of 151,936 is off by 2e-4, this
// one by 1e-6.
mx::array log_sum_exp(const mx::array& x) {
  const mx::array unit = mx::array(ExpConstants::kWeightOfTheLikeliest);
  const mx::array max = mx::max(x, 1, /*keepdims=*/true);
  const mx::array shares = mx::exp(mx::subtract(x, max));
  const mx::array sum =
      mx::sum(mx::astype(mx::multiply(shares, unit), mx::int64), 1, /*keepdims=*/true);
  return mx::add(max, mx::log(mx::divide(mx::astype(sum, mx::float32), unit)));
}

Rows rows_of(const Tensor& logits, const Tensor& token_ids, const LogProbsArgs& args) {
  mx::array x = array_of(logits);
  if (args.rows != nullptr) x = mx::take(x, array_of(*args.rows), 0);
  x = mx::astype(x, mx::float32);
  const mx::array ids = array_of(token_ids);
  const mx::array zero = mx::array(0);
  const mx::array has_token = mx::expand_dims(mx::greater_equal(or_fault(ids, x), zero), 1);
  return {.x = x,
          .has_token = has_token,
          .log_sum_exp = log_sum_exp(x),
          .ids = mx::expand_dims(mx::maximum(ids, zero), 1)};
}

// `value` [n, 1] where the row has a token, else `other`: [n]
mx::array where_token(const Rows& rows, const mx::array& value, const mx::array& other) {
  return mx::squeeze(mx::where(rows.has_token, value, other), 1);
}

struct Top {
  std::vector<mx::array> ids;
  std::vector<mx::array> logprobs;
};

// A block's largest logit tells whether it can hold one of the likeliest.
constexpr int kBlock = 128;

// The place of the largest of x [n, places], as a column. argmax takes the first among equals,
// which a device's sort may not.
mx::array place_of_largest(const mx::array& x) {
  return mx::astype(mx::argmax(x, 1, /*keepdims=*/true), mx::int32);
}

// The ids among which the num_top likeliest are, ascending: [n, num_top * kBlock]. Of more blocks
// than that those with the largest maxima, the first ones among equals, hold them all.
mx::array candidates_of(const mx::array& x, int num_top) {
  const mx::array lowest = mx::array(-std::numeric_limits<float>::infinity());
  const int num_rows = x.shape(0);
  const int num_blocks = (x.shape(1) + kBlock - 1) / kBlock;
  const mx::array padded = mx::pad(
      x, std::vector<std::pair<int, int>>{{0, 0}, {0, num_blocks * kBlock - x.shape(1)}}, lowest);
  mx::array left = mx::max(mx::reshape(padded, {num_rows, num_blocks, kBlock}), 2);
  const mx::array places = mx::expand_dims(mx::arange(num_blocks, mx::int32), 0);
  std::vector<mx::array> blocks;
  for (int i = 0; i < num_top; ++i) {
    blocks.push_back(place_of_largest(left));
    left = mx::where(mx::equal(places, blocks.back()), lowest, left);
  }
  const mx::array ascending = mx::expand_dims(mx::sort(mx::concatenate(blocks, 1), 1), 2);
  const mx::array ids = mx::add(mx::multiply(ascending, mx::array(kBlock)),
                                mx::arange(kBlock, mx::int32));  // [n, num_top, kBlock]
  // Beyond the vocabulary there is only the last block's rest, and any id will do.
  return mx::minimum(mx::flatten(ids, 1, 2), mx::array(x.shape(1) - 1));
}

// The largest logit after the largest is taken away: num_top columns of ids and log-probabilities.
Top top_of(const Rows& rows, int num_top) {
  const mx::array lowest = mx::array(-std::numeric_limits<float>::infinity());
  const bool has_many = rows.x.shape(1) > 2 * num_top * kBlock;
  const mx::array ids = has_many ? candidates_of(rows.x, num_top)
                                 : mx::expand_dims(mx::arange(rows.x.shape(1), mx::int32), 0);
  mx::array left = has_many ? mx::take_along_axis(rows.x, ids, 1) : rows.x;
  Top top;
  for (int i = 0; i < num_top; ++i) {
    const mx::array place = place_of_largest(left);
    const mx::array id = has_many ? mx::take_along_axis(ids, place, 1) : place;
    const mx::array logit = mx::take_along_axis(left, place, 1);
    const mx::array is_token = mx::logical_and(rows.has_token, mx::greater(logit, lowest));
    top.ids.push_back(mx::where(is_token, id, mx::array(-1)));
    top.logprobs.push_back(
        mx::where(is_token, mx::subtract(logit, rows.log_sum_exp), mx::array(0.0f)));
    left = mx::where(mx::equal(ids, id), lowest, left);
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
