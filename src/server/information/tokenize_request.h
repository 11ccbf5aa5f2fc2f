// POST /tokenize and /detokenize: their fields, as in vLLM and llama.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/fields/chat_prompt_fields.h"
#include "server/fields/reasoning_fields.h"
#include "server/fields/tool_fields.h"

namespace pagoda {

inline constexpr std::size_t kMaxDetokenized = 1 << 20;

struct TokenizeRequest {
  std::string model;
  std::optional<std::string> prompt;  // either this, or messages in `chat`
  // The fields of a chat request, so that messages become the tokens of a chat's prompt.
  ChatPrompt chat;
  ToolUse tools;
  ReasoningFields reasoning;
  std::optional<bool> add_special_tokens;  // absent: true for a prompt, false for a chat
  bool return_token_strs = false;
  // llama.cpp's fields. `content` becomes the prompt, and add_special its add_special_tokens.
  std::optional<std::string> content;
  bool add_special = false;
  bool with_pieces = false;  // each token is an object with its id and its piece of text
};

struct DetokenizeRequest {
  std::string model;
  std::vector<int> tokens;
};

std::vector<Field> tokenize_field_table(TokenizeRequest& request);
nlohmann::json tokenize_request_schema();
std::vector<Field> detokenize_field_table(DetokenizeRequest& request);
nlohmann::json detokenize_request_schema();

ApiResult<TokenizeRequest> read_tokenize_request(const std::string& body,
                                                 std::vector<std::string>& unknown_names);
ApiResult<DetokenizeRequest> read_detokenize_request(const std::string& body,
                                                     std::vector<std::string>& unknown_names);

}  // namespace pagoda
