// apply_penalties: repetition, presence and frequency penalties, on the tokens that a row has seen
// and on no other: the cost does not grow with the vocabulary but for a copy. Keskar et al.,
// "CTRL", arXiv:1909.05858; the other two are OpenAI's.
#pragma once

#include "ops/apply_logit_bias/apply_logit_bias.h"

namespace pagoda {

// A row's own, each [rows] float32.
struct PenaltyFactors {
  Tensor repetition;  // positive; 1: off. Over prompt and output
  Tensor frequency;   // 0: off. For each time in the output
  Tensor presence;    // 0: off. For being in the output
};

// out = logits, with entry e, which stands output_counts[e] times in its row's output (0: in the
// prompt alone), changed to
//   x > 0 ? x / repetition : x * repetition;  in the output also  - frequency * count,  - presence
// in float32, each operation rounded, and then to the logits' type. Entries are distinct.
//   logits         [rows, vocab] float32, float16 or bfloat16, contiguous
//   output_counts  [n] int32
//   out            [rows, vocab], logits' dtype
Tensor apply_penalties(Exec& exec, const Tensor& logits, const LogitEntries& entries,
                       const Tensor& output_counts, const PenaltyFactors& factors);

PAGODA_DECLARE_BODIES(Tensor apply_penalties(Exec& exec, const Tensor& logits,
                                             const LogitEntries& entries,
                                             const Tensor& output_counts,
                                             const PenaltyFactors& factors))

}  // namespace pagoda
