// POST /tokenize and /detokenize: their fields, as in vLLM.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/chat_prompt.h"
#include "server/reasoning_fields.h"
#include "server/tool_fields.h"

namespace pagoda {

// /tokenize answers texts far beyond the context, but not without end: encoding takes time that
// others wait for.
inline constexpr std::size_t kMaxTokenizedBytes = 4 << 20;
// The bound of Tokenizer::longest_piece(), which bounds the memory.
inline constexpr std::size_t kMaxTokenizedPiece = 256 << 10;
inline constexpr std::size_t kMaxDetokenized = 1 << 20;

struct TokenizeRequest {
  std::string model;
  std::optional<std::string> prompt;  // this, or `chat` with messages
  // As a chat has them, so that its messages are the tokens of its prompt.
  ChatPrompt chat;
  ToolFields tools;
  ReasoningFields reasoning;
  std::optional<bool> add_special_tokens;  // absent: true for a prompt, false for a chat
  bool return_token_strs = false;
};

struct DetokenizeRequest {
  std::string model;
  std::vector<int> tokens;
};

std::vector<Field> tokenize_field_table(TokenizeRequest& request);
nlohmann::json tokenize_request_schema();
std::vector<Field> detokenize_field_table(DetokenizeRequest& request);

ApiResult<TokenizeRequest> read_tokenize_request(const std::string& body,
                                                 std::vector<std::string>& unknown_names);
ApiResult<DetokenizeRequest> read_detokenize_request(const std::string& body,
                                                     std::vector<std::string>& unknown_names);

}  // namespace pagoda
