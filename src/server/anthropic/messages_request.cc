#include "server/anthropic/messages_request.h"

#include <fmt/format.h>

#include <cstdint>

#include "core/json.h"
#include "server/base/json_body.h"
#include "server/fields/grammar_field_schemas.h"
#include "server/fields/known_fields.h"

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

ApiError block_error(std::size_t index, std::string_view rest) {
  return bad_request("messages", fmt::format("'messages[{}]{}", index, rest));
}

bool has_text(const RequestJson& object, const char* key) {
  return value_of(object, key).is_string();
}

// Returns a text, or a list's text blocks joined by newlines; nullopt for other content.
std::optional<std::string> block_text(const RequestJson& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array() || content.size() > kMaxParts) return {};
  std::string text;
  for (const RequestJson& block : content) {
    const bool is_text = block.is_object() && has_text(block, "text") &&
                         value_of(block, "type") == RequestJson("text");
    if (!is_text) return {};
    text += (text.empty() ? "" : "\n") + block.at("text").get<std::string>();
  }
  return text;
}

// A translator of one message to chat messages. Tool results become messages of their own.
class MessageTranslator {
 public:
  MessageTranslator(std::size_t index, RequestJson& messages)
      : index_(index), messages_(messages) {}

  MaybeError translate(const RequestJson& message) {
    if (!message.is_object())
      return block_error(index_,
                         fmt::format("': expected an object, got {}", type_in_words(message)));
    const RequestJson& role = value_of(message, "role");
    const bool is_users = role == RequestJson("user");
    if (!is_users && role != RequestJson("assistant"))
      return block_error(index_, ".role': expected user or assistant");
    message_ = {{"role", role}, {"content", nullptr}};
    const RequestJson& content = value_of(message, "content");
    if (!content.is_string() && !content.is_array())
      return block_error(index_, ".content': expected a string or a list of blocks");
    if (content.is_string()) {
      message_["content"] = content;
    } else {
      if (content.size() > kMaxParts)
        return block_error(index_, fmt::format(".content': expected at most {} blocks", kMaxParts));
      for (const RequestJson& block : content) {
        if (auto error = take(block)) return error;
      }
    }
    if (is_users && message_.at("content").is_null()) {
      if (has_results_) return {};
      message_["content"] = "";
    }
    messages_.push_back(message_);
    return {};
  }

 private:
  MaybeError take(const RequestJson& block) {
    if (!block.is_object() || value_of(block, "type").is_null())
      return block_error(index_, ".content': expected blocks with a 'type'");
    const RequestJson& type = value_of(block, "type");
    if (type == RequestJson("text") && has_text(block, "text"))
      return add_text(block.at("text").get<std::string>());
    if (type == RequestJson("thinking") && has_text(block, "thinking")) {
      message_["reasoning_content"] = block.at("thinking");
      return {};
    }
    if (type == RequestJson("redacted_thinking")) return {};
    if (type == RequestJson("tool_use")) return add_call(block);
    if (type == RequestJson("tool_result")) return add_result(block);
    return block_error(
        index_,
        ".content': only blocks of the types text, thinking, tool_use and tool_result "
        "are supported, with what belongs to them");
  }

  MaybeError add_text(const std::string& text) {
    RequestJson& content = message_["content"];
    content = content.is_null() ? text : content.get<std::string>() + "\n" + text;
    return {};
  }

  MaybeError add_call(const RequestJson& block) {
    const RequestJson& input = value_of(block, "input");
    if (!has_text(block, "id") || !has_text(block, "name") || !input.is_object())
      return block_error(index_, ".content': expected a tool_use with 'id', 'name' and 'input'");
    message_["tool_calls"].push_back(
        {{"id", block.at("id")},
         {"type", "function"},
         {"function", {{"name", block.at("name")}, {"arguments", input}}}});
    return {};
  }

  MaybeError add_result(const RequestJson& block) {
    const RequestJson& content = value_of(block, "content");
    const auto text = content.is_null() ? std::string() : block_text(content);
    if (!has_text(block, "tool_use_id") || !text)
      return block_error(
          index_, ".content': expected a tool_result with 'tool_use_id' and texts as content");
    has_results_ = true;
    messages_.push_back(
        {{"role", "tool"}, {"tool_call_id", block.at("tool_use_id")}, {"content", *text}});
    return {};
  }

  std::size_t index_;
  RequestJson& messages_;
  RequestJson message_;
  bool has_results_ = false;
};

MaybeError read_anthropic_messages(const RequestJson& value, MessagesRequest& request) {
  if (auto error = check_message_list(value)) return error;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (auto error = MessageTranslator(i, request.messages).translate(value[i])) return error;
  }
  return {};
}

MaybeError read_system(const RequestJson& value, MessagesRequest& request) {
  const auto text = block_text(value);
  if (!text) return wrong_type("system", "a string or a list of text blocks", value);
  if (!text->empty()) request.system = {{"role", "system"}, {"content", *text}};
  return {};
}

// Reads tools, and rewrites them in the form of chat requests.
MaybeError read_anthropic_tools(const RequestJson& value, MessagesRequest& request) {
  if (!value.is_array()) return wrong_type("tools", "a list of tools", value);
  RequestJson tools = RequestJson::array();
  for (const RequestJson& tool : value) {
    if (!tool.is_object()) return wrong_type("tools", "a list of tools", value);
    const RequestJson& type = value_of(tool, "type");
    if (!type.is_null() && type != RequestJson("custom"))
      return bad_request("tools", "'tools[].type': only 'custom' is supported");
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
  } else if (type == RequestJson("tool") && has_text(value, "name")) {
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

// Returns a schema of this file with its placeholders ({text}, {block}, {texts}, {parts}) replaced.
std::string with_texts(std::string_view schema) {
  const std::string text = R"({"type": "string", "maxLength": 16777216})";
  const std::string block = fmt::format(
      R"({{"type": "object", "required": ["type", "text"], "properties": {{"type": {{"const": "text"}}, "text": {}}}}})",
      text);
  const std::string texts =
      fmt::format(R"({{"anyOf": [{}, {{"type": "array", "maxItems": {}, "items": {}}}]}})", text,
                  kMaxParts, block);
  return fmt::format(fmt::runtime(schema), fmt::arg("text", text), fmt::arg("block", block),
                     fmt::arg("texts", texts), fmt::arg("parts", kMaxParts));
}

std::string_view anthropic_messages_schema() {
  static const std::string schema = with_texts(
      R"({{"type": "array", "minItems": 1, "maxItems": 4096, "items": {{"type": "object",
        "required": ["role", "content"], "properties": {{"role": {{"enum": ["user", "assistant"]}},
        "content": {{"anyOf": [{text}, {{"type": "array", "maxItems": {parts}, "items": {{"anyOf": [{block},
          {{"type": "object", "required": ["type", "thinking"], "properties": {{"type": {{"const": "thinking"}},
            "thinking": {text}}}}},
          {{"type": "object", "required": ["type"], "properties": {{"type": {{"const": "redacted_thinking"}}}}}},
          {{"type": "object", "required": ["type", "tool_use_id"], "properties": {{"type": {{"const": "tool_result"}},
            "tool_use_id": {text}, "content": {{"anyOf": [{texts}, {{"type": "null"}}]}}}}}},
          {{"type": "object", "required": ["type", "id", "name", "input"], "properties": {{"type": {{"const": "tool_use"}},
            "id": {text}, "name": {text}, "input": {{"type": "object"}}}}}}]}}}}]}}}}}}}})");
  return schema;
}

std::string_view system_schema() {
  static const std::string schema = with_texts("{texts}");
  return schema;
}

constexpr std::string_view kAnthropicToolsSchema =
    R"({"type": "array", "maxItems": 1024, "items": {"type": "object", "required": ["name"], "properties": {
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

}  // namespace

std::vector<Field> messages_field_table(MessagesRequest& request) {
  std::vector<Field> table = shared_field_table(request.chat.generation);
  table.push_back({.name = "max_tokens",
                   .target = &request.chat.generation.max_tokens,
                   .range = {.minimum = 1},
                   .format = kTokenCountFormat});
  table.push_back(custom_field("stop_sequences", request, read_stop_sequences, stop_list_schema()));
  table.push_back(
      custom_field("messages", request, read_anthropic_messages, anthropic_messages_schema()));
  table.back().required = true;
  table.push_back(custom_field("system", request, read_system, system_schema()));
  table.push_back(custom_field("tools", request, read_anthropic_tools, kAnthropicToolsSchema));
  table.push_back(custom_field("tool_choice", request, read_anthropic_choice, kChoiceSchema));
  table.push_back(custom_field("thinking", request, read_thinking, kThinkingSchema));
  for (const char* name : {"metadata", "service_tier", "betas", "inference_geo"})
    table.push_back({.name = name, .target = IgnoredField{}});
  for (const char* name : {"container", "mcp_servers", "context_management", "output_config"})
    table.push_back({.name = name, .target = RefusedField{}});
  for (Field& field : grammar_field_table(request.chat.generation.grammar))
    table.push_back(std::move(field));
  add_known_fields(table, FieldPlace::kMessages);
  return table;
}

namespace {

nlohmann::json schema_of_message_fields() {
  MessagesRequest request;
  const std::vector<Field> table = messages_field_table(request);
  nlohmann::json schema = fields_schema(table);
  describe_options(schema, table);
  describe_grammars_together(schema, nullptr);
  return schema;
}

}  // namespace

nlohmann::json message_count_schema() {
  nlohmann::json schema = schema_of_message_fields();
  // The format bounds max_tokens by the context, which matters only if an answer is generated.
  schema["properties"]["max_tokens"].erase("format");
  return schema;
}

nlohmann::json messages_request_schema() {
  nlohmann::json schema = schema_of_message_fields();
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
