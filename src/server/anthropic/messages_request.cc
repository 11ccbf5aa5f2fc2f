#include "server/anthropic/messages_request.h"

#include <fmt/format.h>

#include <cstdint>

#include "core/json.h"
#include "server/anthropic/message_input.h"
#include "server/base/json_body.h"
#include "server/fields/grammar_field_schemas.h"
#include "server/fields/known_fields.h"

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

MaybeError read_messages_field(const RequestJson& value, MessagesRequest& request) {
  return read_anthropic_messages(value, request.messages);
}

MaybeError read_system(const RequestJson& value, MessagesRequest& request) {
  return read_anthropic_system(value, request.system);
}

// Refuses tools that Anthropic defines, whose names hold a date. Its servers run most of them.
MaybeError check_tool_type(const RequestJson& type) {
  if (type.is_null() || type == RequestJson("custom")) return {};
  return bad_request("tools",
                     fmt::format("'tools[].type': expected custom, got {}", json_text(type)),
                     "unsupported_parameter");
}

// Reads tools, and rewrites them in the form of chat requests.
MaybeError read_anthropic_tools(const RequestJson& value, MessagesRequest& request) {
  if (!value.is_array()) return wrong_type("tools", "a list of tools", value);
  RequestJson tools = RequestJson::array();
  for (const RequestJson& tool : value) {
    if (!tool.is_object()) return wrong_type("tools", "a list of tools", value);
    if (auto error = check_tool_type(value_of(tool, "type"))) return error;
    RequestJson function = RequestJson::object();
    for (const auto& [from, to] : {std::pair("name", "name"),
                                   {"description", "description"},
                                   {"input_schema", "parameters"},
                                   {"strict", "strict"}}) {
      const RequestJson& found = value_of(tool, from);
      if (!found.is_null()) function[to] = found;
    }
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return read_tools(tools, ToolShape::kNested, request.chat.tools);
}

MaybeError read_anthropic_choice(const RequestJson& value, MessagesRequest& request) {
  const RequestJson type = value.is_object() ? value_of(value, "type") : RequestJson();
  ToolUse& tools = request.chat.tools;
  if (type == RequestJson("none")) {
    tools.mode = ToolMode::kNone;
  } else if (type == RequestJson("any")) {
    tools.mode = ToolMode::kRequired;
  } else if (type == RequestJson("tool") && value_of(value, "name").is_string()) {
    tools.mode = ToolMode::kRequired;
    tools.function = value.at("name").get<std::string>();
  } else if (type != RequestJson("auto")) {
    return bad_request(
        "tool_choice",
        R"('tool_choice': expected {"type": "auto"}, any, none, or tool with a name)");
  }
  const RequestJson& single = value_of(value, "disable_parallel_tool_use");
  if (!single.is_null() && !single.is_boolean())
    return wrong_type("tool_choice.disable_parallel_tool_use", "true or false", single);
  tools.has_parallel_calls = single != RequestJson(true);
  return {};
}

MaybeError read_stop_sequences(const RequestJson& value, MessagesRequest& request) {
  if (!value.is_array()) return wrong_type("stop_sequences", "a list of strings", value);
  return read_stop("stop_sequences", value, request.chat.generation.stop);
}

MaybeError read_thinking(const RequestJson& value, MessagesRequest& request) {
  const RequestJson type = value.is_object() ? value_of(value, "type") : RequestJson();
  const bool is_on = type == RequestJson("enabled") || type == RequestJson("adaptive");
  if (!is_on && type != RequestJson("disabled"))
    return bad_request("thinking",
                       R"('thinking': expected {"type": "enabled"}, adaptive or disabled)");
  request.chat.reasoning.enable_thinking = is_on;
  if (!is_on) return {};
  const std::vector<Field> fields = {{.name = "budget_tokens",
                                      .target = &request.chat.reasoning.token_budget,
                                      .range = {.minimum = 0}}};
  return read_inner_fields(value, fields, "thinking");
}

// Reads the form of the answer, which two fields may give. `name`: the field's place.
MaybeError read_format(std::string_view name, const RequestJson& format, MessagesRequest& request) {
  if (format.is_null()) return {};
  if (!request.format.is_null() && request.format != format) {
    return bad_request(std::string(name),
                       "'output_format' and 'output_config.format' mean the same, but their values "
                       "differ");
  }
  if (!request.format.is_null()) return {};
  request.format = format;
  return read_format_at({name, name}, format, request.chat.generation.grammar);
}

MaybeError read_output_format(const RequestJson& value, MessagesRequest& request) {
  return read_format("output_format", value, request);
}

MaybeError read_output_config(const RequestJson& value, MessagesRequest& request) {
  if (!value.is_object()) return wrong_type("output_config", "an object", value);
  if (const RequestJson& effort = value_of(value, "effort"); !effort.is_null()) {
    if (auto error = read_effort("output_config.effort", effort, request.chat.reasoning))
      return error;
  }
  return read_format("output_config.format", value_of(value, "format"), request);
}

constexpr std::string_view kAnthropicToolsSchema =
    R"({"type": "array", "maxItems": 1024, "items": {"title": "AnthropicTool", "type": "object", "required": ["name"], "properties": {
        "type": {"enum": ["custom", null]}, "description": {"type": ["string", "null"], "maxLength": 16777216},
        "name": {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[A-Za-z0-9_.:/-]+$"},
        "input_schema": {"type": ["object", "null"]}, "strict": {"type": ["boolean", "null"]}}}})";
// The schema omits "any" and "tool": they need a grammar, which has rules of its own.
constexpr std::string_view kChoiceSchema =
    R"({"type": "object", "required": ["type"], "properties": {"type": {"enum": ["auto", "none"]},
        "disable_parallel_tool_use": {"type": ["boolean", "null"]}}})";
constexpr std::string_view kThinkingSchema =
    R"({"type": "object", "required": ["type"], "properties": {"type": {"enum": ["enabled", "adaptive", "disabled"]},
        "budget_tokens": {"type": ["integer", "null"], "minimum": 0, "maximum": 2147483647}}})";

// The schema omits json_object and text, which are taken as in response_format.
constexpr std::string_view kOutputConfigSchema =
    R"({{"type": "object", "properties": {{
        "effort": {{"enum": ["none", "minimal", "low", "medium", "high", "xhigh", "max", null]}},
        "format": {{"anyOf": [{{"type": "null"}}, {}]}}}}}})";

std::string_view output_config_schema() {
  static const std::string schema = fmt::format(kOutputConfigSchema, flat_format_schema());
  return schema;
}

}  // namespace

std::vector<Field> messages_field_table(MessagesRequest& request) {
  std::vector<Field> table = shared_field_table(request.chat.generation);
  table.push_back({.name = "max_tokens",
                   .target = &request.chat.generation.max_tokens,
                   .range = {.minimum = 1, .saturates = true},
                   .description = "The answer ends with the context in any case."});
  table.push_back(custom_field("stop_sequences", request, read_stop_sequences, stop_list_schema()));
  table.push_back(
      custom_field("messages", request, read_messages_field, anthropic_messages_schema()));
  table.back().required = true;
  table.push_back(custom_field("system", request, read_system, anthropic_system_schema()));
  table.push_back(custom_field("tools", request, read_anthropic_tools, kAnthropicToolsSchema));
  table.push_back(custom_field("tool_choice", request, read_anthropic_choice, kChoiceSchema));
  table.push_back(custom_field("thinking", request, read_thinking, kThinkingSchema));
  for (const char* name :
       {"metadata", "service_tier", "betas", "inference_geo", "speed", "cache_control",
        "context_management", "diagnostics", "user_profile_id", "workspace_id", "billing_policy"})
    table.push_back({.name = name, .target = IgnoredField{}});
  for (const char* name : {"container", "mcp_servers", "compaction", "thread"})
    table.push_back({.name = name, .target = RefusedField{}});
  // Without fallbacks of its own, Anthropic's server takes "default" for none too.
  table.push_back({.name = "fallbacks", .target = RefusedField{R"([[], "default"])"}});
  for (Field& field : grammar_field_table(request.chat.generation.grammar))
    table.push_back(std::move(field));
  table.push_back(
      custom_field("output_config", request, read_output_config, output_config_schema()));
  table.back().description = "A JSON Schema that holds the answer, and the template's effort.";
  table.push_back(custom_field("output_format", request, read_output_format, flat_format_schema()));
  table.back().description = "Older name of output_config.format.";
  add_known_fields(table, FieldPlace::kMessages);
  return table;
}

nlohmann::json message_count_schema() {
  MessagesRequest request;
  const std::vector<Field> table = messages_field_table(request);
  nlohmann::json schema = fields_schema(table);
  describe_options(schema, table);
  const nlohmann::json no_config = parse_json(R"({"properties": {"output_config": {"properties": {
      "format": {"type": "null"}}}}})");
  const nlohmann::json no_format = {{"properties", {{"output_format", {{"type", "null"}}}}}};
  describe_grammars_together(schema, {{"allOf", {no_config, no_format}}});
  add_rule(schema, {{"anyOf", {no_config, no_format}}});
  return schema;
}

nlohmann::json messages_request_schema() {
  nlohmann::json schema = message_count_schema();
  schema["required"].push_back("max_tokens");
  schema["properties"]["max_tokens"]["type"] = "integer";
  return schema;
}

ApiResult<MessagesRequest> read_messages_request(const std::string& body, bool generates,
                                                 std::vector<std::string>& unknown_names) {
  MessagesRequest request;
  if (auto error = read_generation_body(body, messages_field_table(request),
                                        request.chat.generation, unknown_names))
    return std::move(*error);
  if (generates && !request.chat.generation.max_tokens)
    return bad_request("max_tokens", "'max_tokens' is required", "missing_required_parameter");
  RequestJson messages = RequestJson::array();
  if (!request.system.is_null()) messages.push_back(request.system);
  for (const RequestJson& message : request.messages) messages.push_back(message);
  if (auto error = read_messages(messages, request.chat.prompt)) return std::move(*error);
  // If the last message is a text of the assistant, the answer continues it.
  const RequestJson& last = messages.back();
  const bool goes_on = last.at("role") == RequestJson("assistant") &&
                       last.at("content").is_string() && !last.contains("tool_calls");
  request.chat.prompt.add_generation_prompt = !goes_on;
  request.chat.prompt.continue_final_message = goes_on;
  if (auto error = resolve_prompt(request.chat.tools, request.chat.reasoning, request.chat.prompt))
    return std::move(*error);
  return request;
}

}  // namespace pagoda
