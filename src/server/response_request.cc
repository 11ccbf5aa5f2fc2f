#include "server/response_request.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "server/json_body.h"
#include "server/response_items.h"

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

constexpr std::size_t kMaxIncluded = 64;

// Reads text.format as chats' response_format has it, and says where it stands.
MaybeError read_text(const RequestJson& value, ResponseRequest& request) {
  if (!value.is_object()) return wrong_type("text", "an object", value);
  const auto format = value.find("format");
  if (format == value.end() || format->is_null()) return {};
  if (!format->is_object()) return bad_request("text", "'text.format': expected an object");
  request.text_format = *format;
  RequestJson nested = *format;
  if (nested.contains("schema") && nested.value("type", RequestJson()) == "json_schema") {
    RequestJson inner = nested;
    inner.erase("type");
    nested = {{"type", "json_schema"}, {"json_schema", std::move(inner)}};
  }
  for (const Field& field : grammar_field_table(request.chat.generation.grammar)) {
    if (field.name != "response_format") continue;
    auto error = std::get<CustomField>(field.target).read("response_format", nested);
    if (error) error->param = "text";
    return error;
  }
  return {};
}

MaybeError read_reasoning(const RequestJson& value, ResponseRequest& request) {
  if (!value.is_object()) return wrong_type("reasoning", "an object", value);
  request.reasoning = value;
  const auto effort = value.find("effort");
  if (effort == value.end() || effort->is_null()) return {};
  for (const Field& field : reasoning_field_table(request.chat.reasoning)) {
    if (field.name != "reasoning_effort") continue;
    auto error = std::get<CustomField>(field.target).read("reasoning.effort", *effort);
    if (error) error->param = "reasoning";
    return error;
  }
  return {};
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
  request.metadata = value;
  return {};
}

using ReadResponseField = MaybeError (*)(const RequestJson&, ResponseRequest&);

Field response_field(std::string_view name, ResponseRequest& request, ReadResponseField read,
                     std::string_view schema) {
  return {.name = name,
          .target = CustomField{[&request, read](std::string_view, const RequestJson& value) {
                                  return read(value, request);
                                },
                                schema}};
}

// Fields of other kinds of responses, none of which is done here.
void add_refused(std::vector<Field>& table) {
  for (const char* name : {"background", "conversation", "prompt", "context_management"})
    table.push_back({.name = name, .target = RefusedField{}});
  for (const char* name : {"user", "safety_identifier", "prompt_cache_key", "service_tier",
                           "prompt_cache_retention", "max_tool_calls", "stream_options"})
    table.push_back({.name = name, .target = IgnoredField{}});
  table.push_back({.name = "truncation", .target = RefusedField{R"(["disabled", "auto"])"}});
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
                   .range = {.minimum = 1},
                   .format = kTokenCountFormat});
  // Less than is taken: which ones are stored no schema knows.
  table.push_back(
      response_field("previous_response_id", request, read_previous_id, R"({"const": ""})"));
  table.back().description = "Goes on with the conversation of a response that is stored.";
  table.push_back({.name = "store",
                   .target = &request.is_stored,
                   .description = "Whether the response can be fetched, and gone on with."});
  table.push_back({.name = "top_logprobs",
                   .target = &request.chat.top_logprobs,
                   .range = {.minimum = 0, .maximum = kMaxLogprobs}});
  table.push_back(response_field("text", request, read_text,
                                 R"({"type": "object", "properties": {"format": {"anyOf": [
                             {"type": "null"}, {"type": "object", "required": ["type"], "properties": {
                               "type": {"enum": ["text", "json_object"]}}, "additionalProperties": false}]}}})"));
  table.push_back(response_field("reasoning", request, read_reasoning,
                                 R"({"type": "object", "properties": {"effort": {"enum":
                             ["none", "minimal", "low", "medium", "high", "xhigh", "max", null]}}})"));
  table.push_back(response_field(
      "include", request, read_include,
      R"({"type": "array", "maxItems": 64, "items": {"type": "string", "maxLength": 256}})"));
  table.push_back(response_field("metadata", request, read_metadata, R"({"type": "object"})"));
  add_tools(table, request);
  add_refused(table);
  return table;
}

nlohmann::json response_request_schema() {
  ResponseRequest request;
  nlohmann::json schema = fields_schema(response_field_table(request));
  return schema;
}

ApiResult<ResponseRequest> read_response_request(const std::string& body,
                                                 std::vector<std::string>& unknown_names) {
  ResponseRequest request;
  if (auto error = read_generation_body(body, response_field_table(request),
                                        request.chat.generation, unknown_names))
    return std::move(*error);
  if (auto error = settle_prompt(request.chat)) return std::move(*error);
  if (request.chat.top_logprobs > 0) request.chat.logprobs = true;
  return request;
}

std::optional<ApiError> settle_messages(const RequestJson& earlier, ResponseRequest& request) {
  RequestJson messages = RequestJson::array();
  if (!request.instructions.empty())
    messages.push_back({{"role", "system"}, {"content", request.instructions}});
  for (const RequestJson& message : earlier) messages.push_back(message);
  for (const RequestJson& message : request.input) messages.push_back(message);
  return read_messages(messages, request.chat.prompt);
}

}  // namespace pagoda
