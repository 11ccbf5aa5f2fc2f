// POST /v1/responses (OpenAI's Responses API): its fields, and the chat request that a body is
// translated to.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "server/base/request_json.h"
#include "server/chat/chat_request.h"

namespace pagoda {

inline constexpr std::size_t kMaxInputItems = 4096;
inline constexpr std::size_t kMaxResponseIdChars = 256;
// OpenAI's bounds of `metadata`.
inline constexpr std::size_t kMaxMetadataPairs = 16;
inline constexpr std::size_t kMaxMetadataKeyChars = 64;
inline constexpr std::size_t kMaxMetadataValueChars = 512;

struct ResponseRequest {
  ChatRequest chat;  // its messages are set by resolve_messages()
  std::string instructions;
  RequestJson input = RequestJson::array();  // as chat messages
  std::string previous_response_id;          // "": none
  bool is_stored = true;
  // As they were sent, so that the answer can repeat them; null: not sent.
  RequestJson tools, tool_choice, metadata, text_format, reasoning;
};

std::vector<Field> response_field_table(ResponseRequest& request);
nlohmann::json response_request_schema();

// Reads a body that parse_json_body() returned.
ApiResult<ResponseRequest> read_response_fields(RequestJson body,
                                                std::vector<std::string>& unknown_names);

// Joins the messages for the model: the instructions, the earlier conversation (`earlier`, a list
// of chat messages), and the input, which it moves.
std::optional<ApiError> resolve_messages(RequestJson earlier, ResponseRequest& request);

}  // namespace pagoda
