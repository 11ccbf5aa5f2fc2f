// Fields of a conversation, of a chat's request or of /tokenize: its messages, and how its template
// writes them.
#pragma once

#include <optional>
#include <vector>

#include "server/base/request_json.h"
#include "server/fields/field_reader.h"
#include "serving/prompt_input.h"

namespace pagoda {

inline constexpr int kMaxMessages = 4096;
inline constexpr int kMaxParts = 4096;  // of one message's content

// Checks that a value is a list of as many messages as a request may hold.
std::optional<ApiError> check_message_list(const RequestJson& value);
// Checks messages, a list as chats have it, and takes them into the prompt.
std::optional<ApiError> read_messages(const RequestJson& value, ChatPrompt& prompt);

// Returns the fields, which point into `prompt`: it must outlive the result. /tokenize has these
// fields too.
std::vector<Field> chat_prompt_field_table(ChatPrompt& prompt);
std::optional<ApiError> check_together(const ChatPrompt& prompt);
// Adds to `schema`, the JSON Schema of a table with these fields, what check_together() refuses.
void describe_prompt_together(nlohmann::json& schema);

}  // namespace pagoda
