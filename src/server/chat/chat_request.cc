#include "server/chat/chat_request.h"

#include <iterator>
#include <utility>

#include "core/json.h"
#include "server/base/json_body.h"
#include "server/fields/known_fields.h"
#include "server/fields/prompt_fields.h"

namespace pagoda {

std::vector<Field> chat_field_table(ChatRequest& request) {
  std::vector<Field> table = generation_field_table(request.generation, /*fewest_tokens=*/1);
  std::vector<Field> prompt = chat_prompt_field_table(request.prompt);
  std::move(prompt.begin(), prompt.end(), std::back_inserter(table));
  std::vector<Field> tools = tool_field_table(request.tools, ToolShape::kNested);
  std::move(tools.begin(), tools.end(), std::back_inserter(table));
  std::vector<Field> reasoning = reasoning_field_table(request.reasoning);
  std::move(reasoning.begin(), reasoning.end(), std::back_inserter(table));
  table.push_back({.name = "logprobs", .target = &request.logprobs});
  table.push_back({.name = "top_logprobs",
                   .target = &request.top_logprobs,
                   .range = {.minimum = 0, .maximum = kMaxLogprobs},
                   .description = "The likeliest tokens at each place; needs logprobs."});
  table.push_back(answered_truncation_field(request.truncate_prompt_tokens));
  add_known_fields(table, FieldPlace::kChat);
  return table;
}

nlohmann::json chat_request_schema() {
  ChatRequest request;
  nlohmann::json schema = chat_fields_schema(chat_field_table(request));
  add_truncation_rule(schema);
  add_rule(
      schema,
      parse_json(
          R"({"anyOf": [{"required": ["logprobs"], "properties": {"logprobs": {"const": true}}},
                                 {"properties": {"top_logprobs": {"enum": [0, null]}}}]})"));
  return schema;
}

std::optional<ApiError> resolve_prompt(const ToolUse& tools, const ReasoningFields& reasoning,
                                       ChatPrompt& prompt) {
  if (auto error = check_together(tools)) return error;
  if (tools.is_allowed()) prompt.tools_json = tools.tools_json;
  prompt.template_kwargs_json = add_reasoning_variables(reasoning, prompt.template_kwargs_json);
  return {};
}

ApiResult<ChatRequest> read_chat_request(const std::string& body,
                                         std::vector<std::string>& unknown_names) {
  auto parsed = parse_json_body(body);
  if (!parsed.ok()) return std::move(parsed).error();
  ChatRequest request;
  if (auto error =
          read_chat_fields(*std::move(parsed), chat_field_table(request), request, unknown_names))
    return std::move(*error);
  if (auto error = check_truncation(request.truncate_prompt_tokens)) return std::move(*error);
  if (request.top_logprobs > 0 && !request.logprobs) {
    return bad_request("top_logprobs", "'top_logprobs' needs 'logprobs' to be true");
  }
  return request;
}

std::optional<ApiError> read_chat_fields(RequestJson body, const std::vector<Field>& table,
                                         ChatRequest& request,
                                         std::vector<std::string>& unknown_names) {
  if (auto error =
          read_generation_fields(std::move(body), table, request.generation, unknown_names))
    return error;
  if (auto error = check_together(request.prompt)) return error;
  return resolve_prompt(request.tools, request.reasoning, request.prompt);
}

nlohmann::json chat_fields_schema(const std::vector<Field>& table) {
  nlohmann::json schema = generation_schema(table);
  describe_prompt_together(schema);
  describe_tools_together(schema);
  return schema;
}

}  // namespace pagoda
