// top_k_top_p_min_p: the thresholds of the usual filters in each row.
//
// Filters always keep a prefix of the row's tokens in the order of their logits: the likeliest
// first, and the lower id first among equals. So a row's threshold is two numbers, and no array of
// the vocabulary's size is written. Min-p: Nguyen et al., arXiv:2407.01082; top-p: Holtzman et al.,
// arXiv:1904.09751.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// The filters of each row; tensors are [rows]. A row's filters do not affect other rows.
struct RowFilters {
  Tensor top_k;         // int32; 0, or the vocabulary and more: off
  Tensor top_p;         // float32 in (0, 1]; 1: off
  Tensor min_p_margin;  // float32, from min_p_margin() below
};

// Returns a logit minus the largest one, for a token whose probability is `min_p` times the
// likeliest's. It is 0 or less, and -inf if min-p is off.
inline float min_p_margin(float min_p, float temperature) {
  if (!(min_p > 0)) return -std::numeric_limits<float>::infinity();
  const double margin = std::log(double{min_p}) * temperature;
  return static_cast<float>(std::max(margin, -double{std::numeric_limits<float>::max()}));
}

// The prefixes of all rows; element i of each tensor belongs to row i.
struct KeptTokens {
  Tensor least;     // [rows] float32: the last token's logit; 0 if the row has no token
  Tensor num_ties;  // [rows] int32: how many of the tokens with that logit are kept, lowest ids
                    // first; 0 if the row has no token
};

// Applies the filters in this order, each to the tokens that the one before has kept:
//   min-p  keeps logits from max + min_p_margin up
//   top-k  keeps the k largest logits, and all that equal the k-th
//   top-p  keeps the shortest prefix whose weights (token_weight.h) reach p of all that are left:
//          share_of(their sum, fraction_of(p)). The token that crosses p is kept.
// Logits of -inf are never kept. A row with a NaN, +inf, or -inf alone keeps nothing.
//   logits               [rows, vocab] float32, contiguous
//   inverse_temperature  [rows] float32, not negative; infinite: a greedy row (ops/sample), whose
//                        threshold is not read
KeptTokens top_k_top_p_min_p(Exec& exec, const Tensor& logits, const Tensor& inverse_temperature,
                             const RowFilters& filters);

// Checks the filters that are given to an op; `op` is the op's name in messages.
void check_row_filters(std::string_view op, const Tensor& logits, const RowFilters& filters);

PAGODA_DECLARE_BODIES(KeptTokens top_k_top_p_min_p(Exec& exec, const Tensor& logits,
                                                   const Tensor& inverse_temperature,
                                                   const RowFilters& filters))

}  // namespace pagoda
