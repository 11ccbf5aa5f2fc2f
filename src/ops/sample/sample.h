// sample: draws one token of each row, by the inverse transform.
//
// The host reads back only one integer per row, and nothing of the vocabulary's size. All backends
// draw the same token, because weights are integers (token_weight.h). A row's token depends on
// nothing but the row.
#pragma once

#include <limits>

#include "ops/argmax/argmax.h"
#include "ops/top_k_top_p_min_p/top_k_top_p_min_p.h"

namespace pagoda {

// Marks a row as greedy: it takes the token of argmax, and ignores filters and uniforms.
inline constexpr float kGreedyInverseTemperature = std::numeric_limits<float>::infinity();

struct SampleArgs {
  Tensor inverse_temperature;  // [rows] float32, not negative
  // [rows, 2] int32, each in [0, 2^31): u = (first * 2^31 + second) / 2^62
  Tensor uniforms;
  const RowFilters* filters = nullptr;  // null: no row has one
};

// Draws among the tokens that the filters keep, in the order of their ids. Takes the first one for
// which the weights up to it add up to more than share_of(sum of all weights, u * 2^62).
//   logits  [rows, vocab] float32, contiguous; vocab at most kMaxWeighedTokens
//   out     [rows] int32: ids, or a fault's number (argmax.h)
Tensor sample(Exec& exec, const Tensor& logits, const SampleArgs& args);

PAGODA_DECLARE_BODIES(Tensor sample(Exec& exec, const Tensor& logits, const SampleArgs& args))

}  // namespace pagoda
