// apply_token_mask: bans what a grammar does not allow.
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// A step's masks. A mask is a bit a token: token i is allowed where bit i % 32 of word i / 32 is
// set.
struct TokenMasks {
  Tensor words;    // [masks, (vocab + 31) / 32] int32
  Tensor mask_of;  // [rows] int32, each below masks: the caller has checked them; negative: all
                   // tokens are allowed
};

// Computes out[i, t] = logits[i, t] where row i's mask allows t, else -infinity
//   logits  [rows, vocab] float32, float16 or bfloat16, contiguous
//   out     [rows, vocab], logits' dtype
Tensor apply_token_mask(Exec& exec, const Tensor& logits, const TokenMasks& masks);

PAGODA_DECLARE_BODIES(Tensor apply_token_mask(Exec& exec, const Tensor& logits,
                                              const TokenMasks& masks))

}  // namespace pagoda
