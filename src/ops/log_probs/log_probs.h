// log_probs: the log-probabilities of chosen tokens and of the likeliest ones. A log-probability is
// a logit minus the row's log-sum-exp, so no array of the vocabulary's size is written. Only the
// rows asked for are read.
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

inline constexpr int kMaxTopTokens = 32;  // num_top

struct LogProbs {
  Tensor chosen;        // [n] float32: natural logarithm
  Tensor rank;          // [n] int32: one more than the number of larger logits
  Tensor top_ids;       // [n, num_top] int32, the largest logit first, the lower id first among
                        // equals; -1 where only logits of -inf are left. num_top 0: undefined
  Tensor top_logprobs;  // [n, num_top] float32; 0 where the id is -1. num_top 0: undefined
};

// The log-probability and the rank of token token_ids[i] in row rows[i].
//   logits     [tokens, vocab] float32, float16 or bfloat16, contiguous
//   rows       [n] int32, each in [0, tokens); null: 0, 1, ... and n is tokens
//   token_ids  [n] int32. A row whose id is negative (argmax.h), or that holds a NaN, +inf, or
//              -inf alone, has a log-probability of 0, rank 0 and ids of -1
//   num_top    0 to kMaxTopTokens, and the vocabulary at most
// Sums are taken in float64 on reference and cpu, and in whole numbers elsewhere.
struct LogProbsArgs {
  const Tensor* rows = nullptr;
  int num_top = 0;
};
LogProbs log_probs(Exec& exec, const Tensor& logits, const Tensor& token_ids,
                   const LogProbsArgs& args);

PAGODA_DECLARE_BODIES(LogProbs log_probs(Exec& exec, const Tensor& logits, const Tensor& token_ids,
                                         const LogProbsArgs& args))

}  // namespace pagoda
