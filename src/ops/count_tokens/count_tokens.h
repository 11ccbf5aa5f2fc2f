// count_tokens: what sequences have seen, token by token, where penalties read it
// (ops/apply_penalties): on the device, where a step counts what it has drawn itself.
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// The counts to add: token token_ids[e] in histogram histograms[e], times[e] more times in the
// output; 0: in the prompt. Where either index is negative nothing is counted: of a row without a
// sequence, or without a token to draw (ops/argmax). The others are distinct and in range: the
// caller has checked them.
struct CountedTokens {
  Tensor histograms;  // [n] int32
  Tensor token_ids;   // [n] int32
  Tensor times;       // [n] int32
};

// Computes counts[h, t] = max(counts[h, t], 1) + times, after histograms `cleared` were set to 0.
//   counts   [histograms, vocab] int32, persistent: 0 for a token that has not been seen, else 1
//            and the times that it stands in the output
//   cleared  [m] int32, distinct; undefined: none
// Written in place. The returned tensor has the same memory and is the edge that orders this write
// before later reads: keep it instead of `counts`.
Tensor count_tokens(Exec& exec, const Tensor& counts, const Tensor& cleared,
                    const CountedTokens& tokens);

PAGODA_DECLARE_BODIES(Tensor count_tokens(Exec& exec, const Tensor& counts, const Tensor& cleared,
                                          const CountedTokens& tokens))

}  // namespace pagoda
