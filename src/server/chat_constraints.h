// Consequences of tools and thoughts for a chat's request: how its answers are taken apart, and the
// grammar that holds them to calls.
#pragma once

#include <optional>

#include "server/api_error.h"
#include "server/chat_job.h"
#include "serving/served_model.h"

namespace pagoda {

// Sets `parsing`, the grammar of calls that must be made, and that marks which are special tokens
// are shown. `job` has its prompt. Errors: a grammar beside calls that must be made.
std::optional<ApiError> settle_answer_format(const ServedModel& model, ChatJob& job);

}  // namespace pagoda
