// Anthropic's messages and system prompt, translated to chat messages.
#pragma once

#include <optional>
#include <string_view>

#include "server/base/api_error.h"
#include "server/base/request_json.h"

namespace pagoda {

// Reads `messages`, and appends them to `messages` as chat messages. Results of tools become
// messages of their own. Errors name the message: 'messages[2].role'.
std::optional<ApiError> read_anthropic_messages(const RequestJson& value, RequestJson& messages);

// Reads `system`, and sets `message` to a chat message if there is any text. A first block that
// only tells Anthropic whom to bill is left out: its text changes with every request, so that no
// prompt that begins with it would be found in the prefix cache.
std::optional<ApiError> read_anthropic_system(const RequestJson& value, RequestJson& message);

// Returns the JSON Schema of `messages`.
std::string_view anthropic_messages_schema();
// Returns the JSON Schema of `system`.
std::string_view anthropic_system_schema();

}  // namespace pagoda
