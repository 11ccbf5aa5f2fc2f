// top_k_top_p_min_p: the thresholds of the usual filters in each row.
//
// They always keep a prefix of the row's tokens in the order of their logits: the likeliest first,
// and the lower id first among equals. So a threshold is two numbers a row, and no array of the
// vocabulary's size is written. Min-p: Nguyen et al., arXiv:2407.01082; top-p: Holtzman et al.,
// arXiv:1904.09751.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// A row's own, each [rows]; a row with a filter off is untouched by its neighbour's.
struct RowFilters {
  Tensor top_k;         // int32; 0, or the vocabulary and more: off
  Tensor top_p;         // float32 in (0, 1]; 1: off
  Tensor min_p_margin;  // float32, of min_p_margin() below
};

// Returns how far below the largest logit a token may be whose probability is `min_p` of the
// likeliest's: 0 or less; -inf where min-p is off.
inline float min_p_margin(float min_p, float temperature) {
  if (!(min_p > 0)) return -std::numeric_limits<float>::infinity();
  const double margin = std::log(double{min_p}) * temperature;
  return static_cast<float>(std::max(margin, -double{std::numeric_limits<float>::max()}));
}

// The prefix of a row; row i of each tensor.
struct KeptTokens {
  Tensor least;     // [rows] float32: the last token's logit; 0 where the row has no token
  Tensor num_ties;  // [rows] int32: how many of the tokens with that logit are kept, lowest ids
                    // first; 0 where the row has no token
};

// Applies the filters in this order, each to what the last one left:
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

// Checks what a call of any op with filters takes; `op` names it.
void check_row_filters(std::string_view op, const Tensor& logits, const RowFilters& filters);

PAGODA_DECLARE_BODIES(KeptTokens top_k_top_p_min_p(Exec& exec, const Tensor& logits,
                                                   const Tensor& inverse_temperature,
                                                   const RowFilters& filters))

}  // namespace pagoda
