// argmax: the likeliest token of each row; what greedy sampling is where nothing else is asked.
#pragma once

#include "draw/drawn_token.h"
#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// Computes out[i] = the id of the largest of logits[i, :], the lowest one among equals; or one of
// drawn_token.h
//   logits  [rows, vocab] float32, contiguous
//   out     [rows] int32
Tensor argmax(Exec& exec, const Tensor& logits);

PAGODA_DECLARE_BODIES(Tensor argmax(Exec& exec, const Tensor& logits))

}  // namespace pagoda
