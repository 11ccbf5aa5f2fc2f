// POST /v1/chat/completions: its fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/base/request_json.h"
#include "server/fields/chat_prompt_fields.h"
#include "server/fields/generation_fields.h"
#include "server/fields/reasoning_fields.h"
#include "server/fields/tool_fields.h"

namespace pagoda {

struct ChatRequest {
  GenerationFields generation;
  ChatPrompt prompt;
  ToolUse tools;
  ReasoningFields reasoning;
  bool logprobs = false;
  int top_logprobs = 0;
};

std::vector<Field> chat_field_table(ChatRequest& request);
nlohmann::json chat_request_schema();

// Takes into the prompt what the fields of tools and of reasoning come to. Errors are
// check_together()'s of the tools.
std::optional<ApiError> resolve_prompt(const ToolUse& tools, const ReasoningFields& reasoning,
                                       ChatPrompt& prompt);

ApiResult<ChatRequest> read_chat_request(const std::string& body,
                                         std::vector<std::string>& unknown_names);
// Does the same with what parse_json_body() returned.
ApiResult<ChatRequest> read_chat_fields(RequestJson body, std::vector<std::string>& unknown_names);

}  // namespace pagoda
