// argmax: the likeliest token of each row; what greedy sampling is where nothing else is asked.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// What stands for a token where a row has none. Other rows know nothing of it.
inline constexpr std::int32_t kRowIsNotNumbers = -1;  // a NaN or +inf among its logits
inline constexpr std::int32_t kRowHasNoToken = -2;    // all of them are -inf

// What a drawn number says of its row: a token, or why it has none (kInvalidArgument).
Status status_of_drawn(std::int32_t drawn, std::int64_t vocab_size);

// out[i] = the id of the largest of logits[i, :], the lowest one among equals; or one of the above
//   logits  [rows, vocab] float32, contiguous
//   out     [rows] int32
Tensor argmax(Exec& exec, const Tensor& logits);

PAGODA_DECLARE_BODIES(Tensor argmax(Exec& exec, const Tensor& logits))

}  // namespace pagoda
