#include "server/responses/response_request.h"

#include <fmt/format.h>

#include "core/json.h"
#include "core/utf8.h"
#include "server/base/json_body.h"
#include "server/fields/grammar_field_schemas.h"
#include "server/fields/known_fields.h"
#include "server/responses/response_items.h"

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

constexpr std::size_t kMaxIncluded = 64;

MaybeError read_text(const RequestJson& value, ResponseRequest& request) {
  if (!value.is_object()) return wrong_type("text", "an object", value);
  const RequestJson& format = value_of(value, "format");
  if (format.is_null()) return {};
  request.text_format = format;
  return read_format_at({"text", "text.format"}, format, request.chat.generation.grammar);
}

MaybeError read_reasoning(const RequestJson& value, ResponseRequest& request) {
  if (!value.is_object()) return wrong_type("reasoning", "an object", value);
  request.reasoning = value;
  const RequestJson& effort = value_of(value, "effort");
  if (effort.is_null()) return {};
  auto error = read_effort("reasoning.effort", effort, request.chat.reasoning);
  if (error) error->param = "reasoning";
  return error;
}

MaybeError read_include(const RequestJson& value, ResponseRequest& request) {
  const Field field = {.name = "include",
                       .size = {.max_chars = kMaxResponseIdChars, .max_items = kMaxIncluded}};
  std::vector<std::string> names;
  if (auto error = read_strings(field, value, names)) return error;
  for (const std::string& name : names)
    request.chat.logprobs |= name == "message.output_text.logprobs";
  return {};
}

MaybeError read_previous_id(const RequestJson& value, ResponseRequest& request) {
  if (!value.is_string()) return wrong_type("previous_response_id", "a string", value);
  request.previous_response_id = value.get<std::string>();
  return {};
}

MaybeError read_metadata(const RequestJson& value, ResponseRequest& request) {
  if (!value.is_object()) return wrong_type("metadata", "an object", value);
  if (value.size() > kMaxMetadataPairs) {
    return bad_request("metadata", fmt::format("'metadata': expected at most {} pairs, got {}",
                                               kMaxMetadataPairs, value.size()));
  }
  for (const auto& [key, text] : value.items()) {
    if (num_characters(key) > kMaxMetadataKeyChars) {
      return bad_request("metadata", fmt::format("'metadata': expected keys of at most {} "
                                                 "characters, got one of {}",
                                                 kMaxMetadataKeyChars, num_characters(key)));
    }
    if (!text.is_string()) return wrong_type("metadata", "strings as values", text);
    if (const auto& chars = text.get_ref<const std::string&>();
        num_characters(chars) > kMaxMetadataValueChars) {
      return bad_request("metadata", fmt::format("'metadata': expected values of at most {} "
                                                 "characters, got one of {}",
                                                 kMaxMetadataValueChars, num_characters(chars)));
    }
  }
  request.metadata = value;
  return {};
}

// Adds fields of other kinds of responses: refused, or ignored if they do not change the answer.
void add_unserved(std::vector<Field>& table) {
  for (const char* name : {"background", "conversation", "prompt", "context_management"})
    table.push_back({.name = name, .target = RefusedField{}});
  for (const char* name : {"user", "safety_identifier", "prompt_cache_key", "service_tier",
                           "prompt_cache_retention", "max_tool_calls", "stream_options"})
    table.push_back({.name = name, .target = IgnoredField{}});
  table.push_back({.name = "truncation", .target = RefusedField{R"(["disabled", "auto"])"}});
}

// Adds the fields of grammars, except response_format: `text` replaces it.
void add_grammars(std::vector<Field>& table, ResponseRequest& request) {
  for (Field& field : grammar_field_table(request.chat.generation.grammar)) {
    if (field.name != kResponseFormat) table.push_back(std::move(field));
  }
}

void add_tools(std::vector<Field>& table, ResponseRequest& request) {
  for (Field& field : tool_field_table(request.chat.tools, ToolShape::kFlat)) {
    if (auto* target = std::get_if<CustomField>(&field.target)) {
      RequestJson& kept = field.name == "tools" ? request.tools : request.tool_choice;
      target->read = [&kept, read = target->read](std::string_view name, const RequestJson& value) {
        kept = value;
        return read(name, value);
      };
    }
    table.push_back(std::move(field));
  }
}

}  // namespace

std::vector<Field> response_field_table(ResponseRequest& request) {
  std::vector<Field> table = shared_field_table(request.chat.generation);
  table.push_back({.name = "input",
                   .target = CustomField{[&request](std::string_view, const RequestJson& value) {
                                           return read_input_items(value, request.input);
                                         },
                                         input_schema()},
                   .required = true});
  table.push_back({.name = "instructions",
                   .target = &request.instructions,
                   .size = {.max_chars = kMaxTextChars},
                   .description = "The system's message of this response alone."});
  table.push_back({.name = "max_output_tokens",
                   .target = &request.chat.generation.max_tokens,
                   .range = {.minimum = 1, .saturates = true},
                   .description = "The response ends with the context in any case."});
  // The schema covers less than is accepted, because it can't know which responses are stored.
  table.push_back(
      custom_field("previous_response_id", request, read_previous_id, R"({"const": ""})"));
  table.back().description = "Goes on with the conversation of a response that is stored.";
  table.push_back({.name = "store",
                   .target = &request.is_stored,
                   .description = "Whether the response can be fetched, and gone on with."});
  table.push_back({.name = "top_logprobs",
                   .target = &request.chat.top_logprobs,
                   .range = {.minimum = 0, .maximum = kMaxLogprobs}});
  table.push_back(stop_field(request.chat.generation.stop));
  add_grammars(table, request);
  table.push_back(custom_field("text", request, read_text,
                               R"({"type": "object", "properties": {
                             "verbosity": {"description": "Accepted; changes nothing."}, "format": {"anyOf": [
                             {"type": "null"}, {"type": "object", "required": ["type"], "properties": {
                               "type": {"enum": ["text", "json_object"]}}, "additionalProperties": false}]}}})"));
  table.push_back(custom_field("reasoning", request, read_reasoning,
                               R"({"type": "object", "properties": {"effort": {"enum":
                             ["none", "minimal", "low", "medium", "high", "xhigh", "max", null]}}})"));
  table.push_back(custom_field(
      "include", request, read_include,
      R"({"type": "array", "maxItems": 64, "items": {"type": "string", "maxLength": 256}})"));
  table.push_back(
      custom_field("metadata", request, read_metadata,
                   R"({"type": "object", "maxProperties": 16, "propertyNames": {"maxLength": 64},
                             "additionalProperties": {"type": "string", "maxLength": 512}})"));
  add_tools(table, request);
  add_unserved(table);
  add_known_fields(table, FieldPlace::kResponses);
  return table;
}

nlohmann::json response_request_schema() {
  ResponseRequest request;
  const std::vector<Field> table = response_field_table(request);
  nlohmann::json schema = fields_schema(table);
  describe_options(schema, table);
  describe_tools_together(schema);
  describe_grammars_together(schema, parse_json(R"({"properties": {"text": {"properties": {
      "format": {"anyOf": [{"type": "null"}, {"properties": {"type": {"const": "text"}}}]}}}}})"));
  return schema;
}

ApiResult<ResponseRequest> read_response_fields(RequestJson body,
                                                std::vector<std::string>& unknown_names) {
  ResponseRequest request;
  if (auto error = read_generation_fields(std::move(body), response_field_table(request),
                                          request.chat.generation, unknown_names))
    return std::move(*error);
  if (auto error = resolve_prompt(request.chat.tools, request.chat.reasoning, request.chat.prompt))
    return std::move(*error);
  if (request.chat.top_logprobs > 0) request.chat.logprobs = true;
  for (const RequestJson& tool : request.tools) {
    const RequestJson& type = value_of(tool, "type");
    if (is_hosted_type(type)) unknown_names.push_back("tools[].type: " + type.get<std::string>());
  }
  return request;
}

std::optional<ApiError> resolve_messages(RequestJson earlier, ResponseRequest& request) {
  RequestJson messages = RequestJson::array();
  if (!request.instructions.empty())
    messages.push_back({{"role", "system"}, {"content", request.instructions}});
  for (RequestJson& message : earlier) messages.push_back(std::move(message));
  for (RequestJson& message : request.input) messages.push_back(std::move(message));
  return read_messages(messages, request.chat.prompt);
}

}  // namespace pagoda
