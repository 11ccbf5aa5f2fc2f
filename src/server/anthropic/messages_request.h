// POST /v1/messages and /v1/messages/count_tokens: their fields (Anthropic's Messages API), and the
// chat that they come to.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "server/chat/chat_request.h"

namespace pagoda {

struct MessagesRequest {
  ChatRequest chat;
  RequestJson system;                           // as a chat's message; null: none
  RequestJson messages = RequestJson::array();  // as a chat's
};

std::vector<Field> messages_field_table(MessagesRequest& request);
nlohmann::json messages_request_schema();
// Describes the same where nothing is generated: max_tokens may be missing, and be anything.
nlohmann::json message_count_schema();

// Reads a body of either endpoint: max_tokens is required where `generates`.
ApiResult<MessagesRequest> read_messages_request(const std::string& body, bool generates,
                                                 std::vector<std::string>& unknown_names);

}  // namespace pagoda
