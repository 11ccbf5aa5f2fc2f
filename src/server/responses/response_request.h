// POST /v1/responses: its fields (OpenAI's Responses API), and the chat that they come to.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "server/base/request_json.h"
#include "server/chat/chat_request.h"

namespace pagoda {

inline constexpr std::size_t kMaxInputItems = 4096;
inline constexpr std::size_t kMaxResponseIdChars = 256;
// Bounds of `metadata`; OpenAI's.
inline constexpr std::size_t kMaxMetadataPairs = 16;
inline constexpr std::size_t kMaxMetadataKeyChars = 64;
inline constexpr std::size_t kMaxMetadataValueChars = 512;

struct ResponseRequest {
  ChatRequest chat;  // its messages are `input` alone until resolve_messages()
  std::string instructions;
  RequestJson input = RequestJson::array();  // as a chat's messages
  std::string previous_response_id;          // "": none
  bool is_stored = true;
  // As sent, for the answer to repeat; null: not sent.
  RequestJson tools, tool_choice, metadata, text_format, reasoning;
};

std::vector<Field> response_field_table(ResponseRequest& request);
nlohmann::json response_request_schema();

ApiResult<ResponseRequest> read_response_request(const std::string& body,
                                                 std::vector<std::string>& unknown_names);

// Puts together what the model is asked: the instructions, what the earlier responses of the
// conversation said (`earlier`, a list of a chat's messages), and the input, which it takes.
std::optional<ApiError> resolve_messages(RequestJson earlier, ResponseRequest& request);

}  // namespace pagoda
