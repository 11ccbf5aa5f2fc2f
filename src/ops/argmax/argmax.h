// argmax: the likeliest token of each row, for greedy sampling without other parameters.
#pragma once

#include "draw/drawn_token.h"
#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// Computes out[i] = the id of the largest of logits[i, :], the lowest id among equals. A row with
// NaN, with +inf, or with -inf alone has no token: out[i] is a number of draw/drawn_token.h.
//   logits  [rows, vocab] float32, contiguous
//   out     [rows] int32
Tensor argmax(Exec& exec, const Tensor& logits);

PAGODA_DECLARE_BODIES(Tensor argmax(Exec& exec, const Tensor& logits))

}  // namespace pagoda
