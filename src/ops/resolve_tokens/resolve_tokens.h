// resolve_tokens: a step's token ids. An earlier step has drawn some of them, and the host has not
// read those. So a step can start before the host knows its tokens.
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// Computes out[t] = token_ids[t] where token_source[t] < 0, else max(drawn[token_source[t]], 0).
// `drawn` is negative for a row that had no token to draw (ops/argmax). Its sequence has ended, so
// its token does not matter.
//   token_ids     [tokens] int32
//   token_source  [tokens] int32, each below rows: the caller has checked them
//   drawn         [rows] int32
//   out           [tokens] int32
Tensor resolve_tokens(Exec& exec, const Tensor& token_ids, const Tensor& token_source,
                      const Tensor& drawn);

PAGODA_DECLARE_BODIES(Tensor resolve_tokens(Exec& exec, const Tensor& token_ids,
                                            const Tensor& token_source, const Tensor& drawn))

}  // namespace pagoda
