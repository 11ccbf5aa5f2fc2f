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
  std::optional<int> truncate_prompt_tokens;  // -1: as many as leave room for max_tokens
};

std::vector<Field> chat_field_table(ChatRequest& request);
nlohmann::json chat_request_schema();

// Adds the tools, and the template's variables from the reasoning fields, to the prompt. Errors are
// those of check_together(tools).
std::optional<ApiError> resolve_prompt(const ToolUse& tools, const ReasoningFields& reasoning,
                                       ChatPrompt& prompt);

ApiResult<ChatRequest> read_chat_request(const std::string& body,
                                         std::vector<std::string>& unknown_names);

// Reads an object that parse_json_body() returned, by a table with the fields of `request`, and
// checks which of them may stand together.
std::optional<ApiError> read_chat_fields(RequestJson body, const std::vector<Field>& table,
                                         ChatRequest& request,
                                         std::vector<std::string>& unknown_names);
// Returns the JSON Schema of what read_chat_fields() takes by this table.
nlohmann::json chat_fields_schema(const std::vector<Field>& table);

}  // namespace pagoda
