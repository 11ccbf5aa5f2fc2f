// The outcome of a draw for a row: a token, or why the row has none.
#pragma once

#include <cstdint>

#include "core/status.h"

namespace pagoda {

// Numbers that a draw gives instead of a token if the row has none. Other rows are not affected.
inline constexpr std::int32_t kRowIsNotNumbers = -1;  // a logit is NaN or +inf
inline constexpr std::int32_t kRowHasNoToken = -2;    // all logits are -inf

// Returns the status of a drawn number: OK for a token, else kInvalidArgument with the reason.
Status status_of_drawn(std::int32_t drawn, std::int64_t vocab_size);

}  // namespace pagoda
