// A Responses API's items as a chat's messages.
#pragma once

#include <optional>

#include "server/base/api_error.h"
#include "server/base/request_json.h"

namespace pagoda {

// Reads `input`, a string or a list of items: messages, calls of functions, their outputs, and
// reasoning. Items that follow one another and belong to one of the assistant's messages become
// one. Errors name the item: 'input[2].role'.
std::optional<ApiError> read_input_items(const RequestJson& value, RequestJson& messages);

// Returns the JSON Schema of `input`.
std::string_view input_schema();

}  // namespace pagoda
