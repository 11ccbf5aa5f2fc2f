// apply_penalties: repetition, presence and frequency penalties, on the tokens that a row's
// sequence has seen and on no other. Keskar et al., "CTRL", arXiv:1909.05858; the other two are
// OpenAI's.
//
// What has been seen lives on the device as counts over the vocabulary (ops/count_tokens): the cost
// is that of a copy of the logits, however long the history is.
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

struct SeenTokenCounts {
  Tensor counts;        // [histograms, vocab] int32, as count_tokens keeps them
  Tensor histogram_of;  // [rows] int32, each below histograms: the caller has checked them;
                        // negative: the row stays as it is
};

// A row's own, each [rows] float32.
struct PenaltyFactors {
  Tensor repetition;  // positive; 1: off. Over prompt and output
  Tensor frequency;   // 0: off. For each time in the output
  Tensor presence;    // 0: off. For being in the output
};

// Computes out = logits, with each token that the row's sequence has seen, `times` times in its
// output (0: in the prompt alone), changed to
//   x > 0 ? x / repetition : x * repetition;  in the output also  - frequency * times,  - presence
// in float32, each operation rounded, and then to the logits' type.
//   logits  [rows, vocab] float32, float16 or bfloat16, contiguous
//   out     [rows, vocab], logits' dtype
Tensor apply_penalties(Exec& exec, const Tensor& logits, const SeenTokenCounts& seen,
                       const PenaltyFactors& factors);

PAGODA_DECLARE_BODIES(Tensor apply_penalties(Exec& exec, const Tensor& logits,
                                             const SeenTokenCounts& seen,
                                             const PenaltyFactors& factors))

}  // namespace pagoda
