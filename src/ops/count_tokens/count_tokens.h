// count_tokens: counts the tokens that sequences have seen, on the device, where penalties read the
// counts (ops/apply_penalties). So a step can count the tokens that it has drawn itself.
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// The counts to add. Entry e: token token_ids[e] is in the output of histogram histograms[e]
// times[e] more times; 0: it is in the prompt. A negative number takes back what was counted, and a
// token that is in the output no more has not been seen. An entry with a negative index counts
// nothing: its row has no sequence, or no token was drawn (ops/argmax). The caller has checked that
// the other entries are distinct and in range.
struct CountedTokens {
  Tensor histograms;  // [n] int32
  Tensor token_ids;   // [n] int32
  Tensor times;       // [n] int32
};

// Computes counts[h, t] = max(counts[h, t], 1) + times, after histograms `cleared` were set to 0.
// If times is negative, 1 becomes 0.
//   counts   [histograms, vocab] int32, persistent: 0 for a token that has not been seen, else 1
//            plus the times that it is in the output
//   cleared  [m] int32, distinct; undefined: none
// Writes in place. The returned tensor has the same memory and is the graph's edge that orders this
// write before later reads: keep it instead of `counts`.
Tensor count_tokens(Exec& exec, const Tensor& counts, const Tensor& cleared,
                    const CountedTokens& tokens);

PAGODA_DECLARE_BODIES(Tensor count_tokens(Exec& exec, const Tensor& counts, const Tensor& cleared,
                                          const CountedTokens& tokens))

}  // namespace pagoda
