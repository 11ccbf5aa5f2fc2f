// The outcome of a draw for a row: a token, or why the row has none.
#pragma once

#include <cstdint>

#include "core/status.h"

namespace pagoda {

// The numbers that stand for a token where a row has none. They change nothing for other rows.
inline constexpr std::int32_t kRowIsNotNumbers = -1;  // a NaN or +inf among its logits
inline constexpr std::int32_t kRowHasNoToken = -2;    // all of them are -inf

// Returns what a drawn number says of its row: a token, or why it has none (kInvalidArgument).
Status status_of_drawn(std::int32_t drawn, std::int64_t vocab_size);

}  // namespace pagoda
