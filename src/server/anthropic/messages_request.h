// POST /v1/messages and /v1/messages/count_tokens (Anthropic's Messages API): their fields, and the
// chat request that a body is translated to.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "server/chat/chat_request.h"

namespace pagoda {

struct MessagesRequest {
  ChatRequest chat;
  RequestJson system;                           // a chat message; null: not sent
  RequestJson messages = RequestJson::array();  // chat messages
  RequestJson format;                           // of the answer, as it was sent; null: not sent
};

std::vector<Field> messages_field_table(MessagesRequest& request);
nlohmann::json messages_request_schema();
// Describes a request for counting: max_tokens may be missing.
nlohmann::json message_count_schema();

// Reads a body of either endpoint. `generates`: an answer is wanted, so max_tokens is required.
ApiResult<MessagesRequest> read_messages_request(const std::string& body, bool generates,
                                                 std::vector<std::string>& unknown_names);

}  // namespace pagoda
