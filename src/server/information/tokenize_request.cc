#include "server/information/tokenize_request.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/json.h"
#include "server/base/request_json.h"
#include "server/chat/chat_request.h"
#include "server/fields/generation_fields.h"
#include "server/fields/prompt_fields.h"

namespace pagoda {
namespace {

std::optional<ApiError> read_flag(const RequestJson& value, std::optional<bool>& flag) {
  if (!value.is_boolean()) return wrong_type("add_special_tokens", "true or false", value);
  flag = value.get<bool>();
  return {};
}

}  // namespace

std::vector<Field> tokenize_field_table(TokenizeRequest& request) {
  std::vector<Field> table;
  for (Field& field : chat_prompt_field_table(request.chat)) {
    field.required = false;
    if (field.name != "add_special_tokens") table.push_back(std::move(field));
  }
  std::ranges::move(tool_field_table(request.tools, ToolShape::kNested), std::back_inserter(table));
  std::ranges::move(reasoning_field_table(request.reasoning), std::back_inserter(table));
  table.push_back(model_field(request.model));
  table.push_back({.name = "prompt",
                   .target = &request.prompt,
                   .size = {.max_chars = kMaxTokenizedBytes},
                   .description = "A text; or messages, which the chat template turns into one."});
  table.push_back(
      {.name = "add_special_tokens",
       .target = CustomField{[&request](std::string_view, const RequestJson& value) {
                               return read_flag(value, request.add_special_tokens);
                             },
                             R"({"type": "boolean"})"},
       .description = "True for a prompt and false for messages where it is left out."});
  table.push_back({.name = "return_token_strs", .target = &request.return_token_strs});
  table.push_back({.name = "content",
                   .target = &request.content,
                   .size = {.max_chars = kMaxTokenizedBytes},
                   .description = "Means the same as prompt, without tokens around it.",
                   .from = "llama.cpp"});
  table.push_back({.name = "add_special",
                   .target = &request.add_special,
                   .description = "Lets the tokenizer put its own tokens around `content`.",
                   .from = "llama.cpp"});
  table.push_back({.name = "with_pieces",
                   .target = &request.with_pieces,
                   .description = "Makes each token an object with its id and its piece of text.",
                   .from = "llama.cpp"});
  return table;
}

nlohmann::json tokenize_request_schema() {
  TokenizeRequest request;
  nlohmann::json schema = fields_schema(tokenize_field_table(request));
  describe_prompt_together(schema);
  describe_tools_together(schema);
  add_rule(schema, parse_json(R"({"anyOf": [
      {"required": ["prompt"], "properties": {"prompt": {"type": "string"}, "content": {"type": "null"}, "messages": {"type": "null"}}},
      {"required": ["content"], "properties": {"content": {"type": "string"}, "prompt": {"type": "null"}, "messages": {"type": "null"}}},
      {"required": ["messages"], "properties": {"messages": {"type": "array"}, "prompt": {"type": "null"}, "content": {"type": "null"}}}]})"));
  return schema;
}

std::vector<Field> detokenize_field_table(DetokenizeRequest& request) {
  return {model_field(request.model),
          {.name = "tokens",
           .target = &request.tokens,
           .range = {.minimum = 0},
           .size = {.max_items = kMaxDetokenized},
           .format = kTokenIdFormat,
           .required = true}};
}

ApiResult<TokenizeRequest> read_tokenize_request(const std::string& body,
                                                 std::vector<std::string>& unknown_names) {
  TokenizeRequest request;
  if (auto error = read_body_fields(body, tokenize_field_table(request), unknown_names)) {
    return std::move(*error);
  }
  const bool has_messages = !request.chat.messages_json.empty();
  if (request.prompt.has_value() + request.content.has_value() + has_messages != 1) {
    return bad_request("prompt", "expected one of 'prompt', 'content' and 'messages'",
                       "missing_required_parameter");
  }
  if (request.content) {
    request.prompt = std::exchange(request.content, {});
    request.add_special_tokens = request.add_special;
  }
  if (auto error = check_together(request.chat)) return std::move(*error);
  if (auto error = resolve_prompt(request.tools, request.reasoning, request.chat))
    return std::move(*error);
  return request;
}

ApiResult<DetokenizeRequest> read_detokenize_request(const std::string& body,
                                                     std::vector<std::string>& unknown_names) {
  DetokenizeRequest request;
  if (auto error = read_body_fields(body, detokenize_field_table(request), unknown_names)) {
    return std::move(*error);
  }
  return request;
}

nlohmann::json detokenize_request_schema() {
  DetokenizeRequest request;
  return fields_schema(detokenize_field_table(request));
}

}  // namespace pagoda
