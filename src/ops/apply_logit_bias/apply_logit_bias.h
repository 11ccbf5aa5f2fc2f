// apply_logit_bias: adds the biases of requests to single logits; -infinity bans a token.
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// Single elements of logits: entry e is (rows[e], token_ids[e]). The caller has checked that both
// are in range.
struct LogitEntries {
  Tensor rows;       // [n] int32
  Tensor token_ids;  // [n] int32
};

// Computes out = logits, with biases[e] added at entry e, in float32 and rounded to the logits'
// type. An entry may repeat if at most one of its biases is finite.
//   logits   [rows, vocab] float32, float16 or bfloat16, contiguous
//   biases   [n] float32, finite or -infinity
//   out      [rows, vocab], logits' dtype
Tensor apply_logit_bias(Exec& exec, const Tensor& logits, const LogitEntries& entries,
                        const Tensor& biases);

PAGODA_DECLARE_BODIES(Tensor apply_logit_bias(Exec& exec, const Tensor& logits,
                                              const LogitEntries& entries, const Tensor& biases))

}  // namespace pagoda
