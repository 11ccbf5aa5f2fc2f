// The items of the Responses API, translated to chat messages.
#pragma once

#include <optional>

#include "server/base/api_error.h"
#include "server/base/request_json.h"

namespace pagoda {

// Reads `input`, a string or a list of items: messages, calls of tools, their outputs, and
// reasoning. Consecutive items that belong to one message of the assistant become one message.
// Calls of OpenAI's other tools become calls of functions; searches are left out, since their items
// do not hold what was found. Errors name the item: 'input[2].role'.
std::optional<ApiError> read_input_items(const RequestJson& value, RequestJson& messages);

// Returns the JSON Schema of `input`.
std::string_view input_schema();

}  // namespace pagoda
