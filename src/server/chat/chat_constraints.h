// Consequences of tools and thoughts for a chat's request: how its answers are taken apart, and the
// grammar that holds them to calls.
#pragma once

#include <optional>
#include <string_view>

#include "server/base/api_error.h"
#include "server/chat/chat_job.h"
#include "serving/served_model.h"

namespace pagoda {

// Sets in `job`, which `request` has become:
// - `parsing`;
// - that marks which are special tokens are shown;
// - the grammar, where an answer is held to calls, or where calls or thoughts may stand beside the
//   JSON that it is held to.
// Errors: another grammar beside calls that must be made.
std::optional<ApiError> settle_answer_format(const ServedModel& model, const ChatRequest& request,
                                             std::string_view prompt, ChatJob& job);

}  // namespace pagoda
