// apply_logit_bias: what requests add to single tokens; with -infinity, what they ban.
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// Single entries of logits: entry e is (rows[e], token_ids[e]), each in range: the caller has
// checked them.
struct LogitEntries {
  Tensor rows;       // [n] int32
  Tensor token_ids;  // [n] int32
};

// Computes out = logits, with biases[e] added at entry e, in float32 and rounded to the logits'
// type. Entries may repeat where all but one of their biases are -infinity.
//   logits   [rows, vocab] float32, float16 or bfloat16, contiguous
//   biases   [n] float32, finite or -infinity
//   out      [rows, vocab], logits' dtype
Tensor apply_logit_bias(Exec& exec, const Tensor& logits, const LogitEntries& entries,
                        const Tensor& biases);

PAGODA_DECLARE_BODIES(Tensor apply_logit_bias(Exec& exec, const Tensor& logits,
                                              const LogitEntries& entries, const Tensor& biases))

}  // namespace pagoda
