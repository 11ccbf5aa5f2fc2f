// apply_penalties: repetition, presence and frequency penalties, on the tokens that a row's
// sequence has seen. The repetition penalty is that of Keskar et al., "CTRL", arXiv:1909.05858; the
// other two are OpenAI's.
//
// Seen tokens are kept on the device as counts over the vocabulary (ops/count_tokens). So the cost
// is that of a copy of the logits, however long the history is.
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

struct SeenTokenCounts {
  Tensor counts;        // [histograms, vocab] int32, as count_tokens keeps them
  Tensor histogram_of;  // [rows] int32, each less than `histograms` (checked by the caller);
                        // negative: the row is not changed
};

// The penalties of each row: each tensor is [rows] float32.
struct PenaltyFactors {
  Tensor repetition;  // positive; 1: off. Applies to tokens of the prompt and of the output
  Tensor frequency;   // 0: off. Subtracted for each time that the token is in the output
  Tensor presence;    // 0: off. Subtracted once if the token is in the output
};

// Computes out = logits, but changes the logit x of each token that the row's sequence has seen to
//   y = x > 0 ? x / repetition : x * repetition  if the token is only in the prompt
//   y - frequency * times - presence             if the token is `times` times in the output
// in float32, each operation rounded. The result is rounded to the logits' type.
//   logits  [rows, vocab] float32, float16 or bfloat16, contiguous
//   out     [rows, vocab], logits' dtype
Tensor apply_penalties(Exec& exec, const Tensor& logits, const SeenTokenCounts& seen,
                       const PenaltyFactors& factors);

PAGODA_DECLARE_BODIES(Tensor apply_penalties(Exec& exec, const Tensor& logits,
                                             const SeenTokenCounts& seen,
                                             const PenaltyFactors& factors))

}  // namespace pagoda
