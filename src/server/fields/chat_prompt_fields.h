// Fields of a conversation, in a chat request or in /tokenize: its messages, and how the chat
// template renders them.
#pragma once

#include <optional>
#include <vector>

#include "server/base/request_json.h"
#include "server/fields/field_reader.h"
#include "serving/prompt_input.h"

namespace pagoda {

inline constexpr int kMaxMessages = 4096;
inline constexpr int kMaxParts = 4096;  // parts of one message's content

// Checks that a value is a list of at least one and at most kMaxMessages messages.
std::optional<ApiError> check_message_list(const RequestJson& value);
// Checks a list of chat messages, and stores it in the prompt.
std::optional<ApiError> read_messages(const RequestJson& value, ChatPrompt& prompt);

// Returns the fields, which point into `prompt`: it must outlive the result.
std::vector<Field> chat_prompt_field_table(ChatPrompt& prompt);
std::optional<ApiError> check_together(const ChatPrompt& prompt);
// Adds the rules of check_together() to `schema`, the JSON Schema of a table with these fields.
void describe_prompt_together(nlohmann::json& schema);

}  // namespace pagoda
