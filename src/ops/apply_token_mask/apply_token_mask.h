// apply_token_mask: bans the tokens that a grammar does not allow.
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// A step's masks, with one bit per token: token i is allowed if bit i % 32 of word i / 32 is set.
struct TokenMasks {
  Tensor words;    // [masks, (vocab + 31) / 32] int32
  Tensor mask_of;  // [rows] int32, each less than `masks` (checked by the caller); negative: all
                   // tokens are allowed
};

// Computes out[i, t] = logits[i, t] if row i's mask allows t, else -infinity
//   logits  [rows, vocab] float32, float16 or bfloat16, contiguous
//   out     [rows, vocab], logits' dtype
Tensor apply_token_mask(Exec& exec, const Tensor& logits, const TokenMasks& masks);

PAGODA_DECLARE_BODIES(Tensor apply_token_mask(Exec& exec, const Tensor& logits,
                                              const TokenMasks& masks))

}  // namespace pagoda
