// ChatPrompt: a conversation, of a chat's request or of /tokenize, with the fields that say how its
// template writes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/base/request_json.h"
#include "server/fields/field_reader.h"

namespace pagoda {

inline constexpr int kMaxMessages = 4096;
inline constexpr int kMaxParts = 4096;  // of one message's content

// A conversation as its template takes it.
struct ChatPrompt {
  std::string messages_json;  // checked: a list of messages with a known role and text content
  std::string tools_json;     // checked: a list of OpenAI's tools; "": none
  std::string template_kwargs_json = "{}";
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  bool add_special_tokens = false;      // templates write them
  std::optional<std::string> raw_text;  // a prompt as it is, instead of the conversation's
  std::string suffix;                   // where the answer stands between raw_text and this
  std::string last_message_text;        // for echo, where the last message is the assistant's
  bool is_for_counting = false;         // it may be longer than the context
};

// Checks that a value is a list of as many messages as a request may hold.
std::optional<ApiError> check_message_list(const RequestJson& value);
// Checks messages, a list as chats have it, and takes them into the prompt.
std::optional<ApiError> read_messages(const RequestJson& value, ChatPrompt& prompt);

// Pointers into `prompt`, which must outlive the result. /tokenize has these fields too.
std::vector<Field> chat_prompt_field_table(ChatPrompt& prompt);
std::optional<ApiError> check_together(const ChatPrompt& prompt);
// Adds to `schema`, the JSON Schema of a table with these fields, what check_together() refuses.
void describe_prompt_together(nlohmann::json& schema);

}  // namespace pagoda
