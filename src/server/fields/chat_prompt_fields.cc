#include "server/fields/chat_prompt_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/json.h"
#include "server/fields/generation_fields.h"
#include "server/fields/template_messages.h"

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "function"};
constexpr std::array<std::string_view, 3> kTextParts = {"text", "input_text", "output_text"};

ApiError message_error(std::size_t index, std::string_view rest) {
  return bad_request("messages", fmt::format("'messages[{}]{}", index, rest));
}

MaybeError check_part(std::size_t index, const RequestJson& part, std::string& text) {
  if (part.is_string()) {
    text += part.get_ref<const std::string&>();
    return {};
  }
  if (!part.is_object()) {
    return message_error(index, fmt::format(".content': expected parts that are objects, got {}",
                                            type_in_words(part)));
  }
  const auto type = part.find("type");
  if (type == part.end() || !type->is_string()) {
    return message_error(index, ".content': expected a part with a 'type' that is a string");
  }
  const auto& name = type->get_ref<const std::string&>();
  if (name == "image_url" || name == "image" || name == "input_image")
    return message_error(index, fmt::format(".content': {}", kImagesAreNotRead));
  if (std::find(kTextParts.begin(), kTextParts.end(), name) == kTextParts.end() &&
      name != "refusal") {
    return message_error(
        index, fmt::format(".content': parts of type '{}' are not supported, only 'text'", name));
  }
  const auto found = part.find(name == "refusal" ? "refusal" : "text");
  if (found == part.end() || !found->is_string()) {
    return message_error(
        index,
        fmt::format(".content': expected a string as the text of a part of type '{}'", name));
  }
  text += found->get_ref<const std::string&>();
  return {};
}

MaybeError check_content(std::size_t index, const RequestJson& message, std::string& text) {
  const auto content = message.find("content");
  text.clear();
  if (content == message.end() || content->is_null()) {
    if (message.at("role") == "assistant" || message.at("role") == "tool") return {};
    return message_error(index, ".content': expected a string or a list of parts, got nothing");
  }
  if (content->is_string()) {
    text = content->get<std::string>();
    return {};
  }
  if (!content->is_array()) {
    return message_error(index,
                         fmt::format(".content': expected a string or a list of parts, got {}",
                                     type_in_words(*content)));
  }
  if (content->size() > kMaxParts) {
    return message_error(index, fmt::format(".content': expected at most {} parts, got {}",
                                            kMaxParts, content->size()));
  }
  for (const RequestJson& part : *content) {
    if (auto error = check_part(index, part, text)) return error;
  }
  return {};
}

// The schema excludes names that the renderer itself gives the template
// (text/rust/text/src/template.rs).
constexpr std::string_view kTemplateKwargsSchema =
    R"({"type": "object", "propertyNames": {"not": {"enum":
        ["messages", "tools", "documents", "add_generation_prompt"]}}})";

// Calls in a message: a function's name with its arguments, or a custom tool's with its input. A
// model's calls may be broken off, so that any value may be sent back as arguments
// (serving/call_completion.h).
constexpr std::string_view kToolCallsSchema =
    R"({"type": "array", "maxItems": 1024, "items": {"anyOf": [
        {"type": "object", "required": ["function"], "properties": {
          "id": {"type": ["string", "null"], "maxLength": 16777216}, "type": {"enum": ["function", null]},
          "function": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "maxLength": 16777216},
            "arguments": {"anyOf": [{"type": "string", "maxLength": 16777216}, {"not": {"type": "string"}}]}}}}},
        {"type": "object", "required": ["type", "custom"], "properties": {
          "id": {"type": ["string", "null"], "maxLength": 16777216}, "type": {"const": "custom"},
          "custom": {"type": "object", "required": ["name", "input"], "properties": {
            "name": {"type": "string", "maxLength": 16777216}, "input": {"type": "string", "maxLength": 16777216}}}}}]}})";
constexpr std::size_t kMaxToolCalls = 1024;

ApiError tool_call_error(std::string_view rest) {
  return bad_request("tool_calls", fmt::format("'tool_calls{}", rest));
}

MaybeError check_custom_call(const RequestJson& call) {
  const RequestJson& custom = value_of(call, "custom");
  if (custom.is_object() && value_of(custom, "name").is_string() &&
      value_of(custom, "input").is_string())
    return {};
  return tool_call_error("[].custom': expected an object with a 'name' and an 'input'");
}

MaybeError check_tool_call(const RequestJson& call) {
  if (!call.is_object()) return tool_call_error("': expected a list of objects");
  const RequestJson& id = value_of(call, "id");
  if (!id.is_null() && !id.is_string()) return tool_call_error("[].id': expected a string");
  const RequestJson& type = value_of(call, "type");
  if (type == RequestJson("custom")) return check_custom_call(call);
  const RequestJson& function = value_of(call, "function");
  if (!function.is_object() || !value_of(function, "name").is_string())
    return tool_call_error("[].function': expected an object with a 'name'");
  if (!type.is_null() && type != RequestJson("function"))
    return tool_call_error("[].type': expected 'function' or 'custom'");
  return {};
}

MaybeError check_tool_calls(std::string_view name, const RequestJson& calls) {
  if (!calls.is_array()) return wrong_type(name, "a list of calls", calls);
  if (calls.size() > kMaxToolCalls) {
    return tool_call_error(
        fmt::format("': expected at most {} calls, got {}", kMaxToolCalls, calls.size()));
  }
  for (const RequestJson& call : calls) {
    if (auto error = check_tool_call(call)) return error;
  }
  return {};
}

constexpr std::string_view kFunctionCallSchema =
    R"({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "maxLength": 16777216},
        "arguments": {"anyOf": [{"type": "string", "maxLength": 16777216}, {"not": {"type": "string"}}]}}})";

// Checks OpenAI's older `function_call`: what a call of tool_calls has as its function.
MaybeError check_function_call(std::string_view, const RequestJson& value) {
  auto error = check_tool_call({{"function", value}});
  if (!error) return {};
  error->param = "function_call";
  constexpr std::string_view kPlace = "'tool_calls[].function";
  if (error->message.starts_with(kPlace))
    error->message.replace(0, kPlace.size(), "'function_call");
  return error;
}

// Fields of a message beside its role and content. They are checked but not kept, because templates
// get the message itself.
struct OtherMessageFields {
  std::string text;

  std::vector<Field> table() {
    const auto text_field = [this](std::string_view name) {
      return Field{.name = name, .target = &text, .size = {.max_chars = kMaxTextChars}};
    };
    const auto refused = [](std::string_view name, std::string_view instead = {}) {
      return Field{.name = name, .target = RefusedField{.instead = instead}};
    };
    Field thought = text_field(kThoughtNames[0]);
    thought.aliases = {kThoughtNames[1]};
    return {
        text_field("name"),
        text_field("tool_call_id"),
        text_field("refusal"),
        thought,
        text_field("thinking"),
        {.name = "tool_calls", .target = CustomField{check_tool_calls, kToolCallsSchema}},
        {.name = "function_call", .target = CustomField{check_function_call, kFunctionCallSchema}},
        refused("audio"),
        refused("images", kImagesAreNotRead),
        refused("tools"),
        refused("prefix"),
        refused("partial")};
  }
};

MaybeError check_role(std::size_t index, const RequestJson& message) {
  const auto role = message.find("role");
  if (role == message.end() || !role->is_string())
    return message_error(index, ".role': expected a string");
  const auto& name = role->get_ref<const std::string&>();
  if (std::find(kRoles.begin(), kRoles.end(), name) != kRoles.end()) return {};
  return message_error(
      index, fmt::format(".role': expected one of {}, got '{}'", fmt::join(kRoles, ", "), name));
}

MaybeError check_message(std::size_t index, const RequestJson& message,
                         const std::vector<Field>& others, std::string& text) {
  if (!message.is_object()) {
    return message_error(index,
                         fmt::format("': expected an object, got {}", type_in_words(message)));
  }
  if (auto error = check_role(index, message)) return error;
  if (auto error = read_inner_fields(message, others, fmt::format("messages[{}]", index))) {
    error->param = "messages";
    return error;
  }
  if (message.at("role") == "function" && !value_of(message, "name").is_string())
    return message_error(index, ".name': expected the function's name");
  return check_content(index, message, text);
}

}  // namespace

std::optional<ApiError> check_message_list(const RequestJson& value) {
  if (!value.is_array()) return wrong_type("messages", "a list of messages", value);
  if (value.empty())
    return bad_request("messages", "'messages': expected at least one message, got an empty list");
  if (value.size() > kMaxMessages) {
    return bad_request("messages", fmt::format("'messages': expected at most {} messages, got {}",
                                               kMaxMessages, value.size()));
  }
  return {};
}

std::optional<ApiError> read_messages(const RequestJson& value, ChatPrompt& prompt) {
  if (auto error = check_message_list(value)) return error;
  std::string text;
  OtherMessageFields others;
  const std::vector<Field> table = others.table();
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (auto error = check_message(i, value[i], table, text)) return error;
  }
  if (value.back().at("role") == "assistant") prompt.last_message_text = text;
  prompt.messages_json = messages_for_templates(value);
  return {};
}

namespace {

MaybeError read_template_kwargs(const RequestJson& value, ChatPrompt& prompt) {
  if (!value.is_object()) return wrong_type("chat_template_kwargs", "an object", value);
  for (const std::string_view name : {"messages", "tools", "documents", "add_generation_prompt"}) {
    if (!value.contains(name)) continue;
    return bad_request("chat_template_kwargs",
                       fmt::format("'chat_template_kwargs': expected other names than '{}', which "
                                   "the template gets from the request",
                                   name));
  }
  prompt.template_kwargs_json = json_text(value);
  return {};
}

// Returns the schema of a message of any role. An assistant's and a tool's may have no content.
nlohmann::json message_schema() {
  using nlohmann::json;
  const json text = {{"type", "string"}, {"maxLength", kMaxTextChars}};
  const json parts = {
      {"type", "array"},
      {"maxItems", kMaxParts},
      {"items",
       {{"anyOf",
         {text,
          {{"title", "TextPart"},
           {"type", "object"},
           {"required", {"type", "text"}},
           {"properties", {{"type", {{"enum", kTextParts}}}, {"text", text}}}},
          {{"title", "RefusalPart"},
           {"type", "object"},
           {"required", {"type", "refusal"}},
           {"properties", {{"type", {{"const", "refusal"}}}, {"refusal", text}}}}}}}}};
  json schema = fields_schema(OtherMessageFields().table());
  schema["title"] = "ChatMessage";
  schema["required"] = json::array({"role"});
  schema["properties"]["role"] = {{"enum", kRoles}};
  schema["properties"]["content"] = {{"anyOf", {text, parts, {{"type", "null"}}}}};
  add_rule(schema,
           parse_json(R"({"anyOf": [{"properties": {"role": {"enum": ["assistant", "tool"]}}},
      {"required": ["content"], "properties": {"content": {"not": {"type": "null"}}}}]})"));
  schema["if"] = {{"properties", {{"role", {{"const", "function"}}}}}};
  schema["then"] = {{"required", {"name"}}, {"properties", {{"name", {{"type", "string"}}}}}};
  return schema;
}

std::string_view messages_schema() {
  static const std::string schema = json_text(nlohmann::json({{"type", "array"},
                                                              {"minItems", 1},
                                                              {"maxItems", kMaxMessages},
                                                              {"items", message_schema()}}));
  return schema;
}

}  // namespace

std::vector<Field> chat_prompt_field_table(ChatPrompt& prompt) {
  return {
      {.name = "messages",
       .target = CustomField{[&prompt](std::string_view, const RequestJson& value) {
                               return read_messages(value, prompt);
                             },
                             messages_schema()},
       .required = true},
      {.name = "chat_template_kwargs",
       .target = CustomField{[&prompt](std::string_view, const RequestJson& value) {
                               return read_template_kwargs(value, prompt);
                             },
                             kTemplateKwargsSchema},
       .description = "Further variables for the chat template.",
       .from = "vLLM"},
      {.name = "add_generation_prompt", .target = &prompt.add_generation_prompt, .from = "vLLM"},
      {.name = "continue_final_message",
       .target = &prompt.continue_final_message,
       .description = "Goes on with the last message; needs add_generation_prompt to be false.",
       .from = "vLLM"},
      {.name = "add_special_tokens",
       .target = &prompt.add_special_tokens,
       .description = "Besides those that the template writes.",
       .from = "vLLM"},
  };
}

std::optional<ApiError> check_together(const ChatPrompt& prompt) {
  if (!prompt.continue_final_message || !prompt.add_generation_prompt) return {};
  return bad_request("continue_final_message",
                     "'continue_final_message' and 'add_generation_prompt' must not both be true");
}

void describe_prompt_together(nlohmann::json& schema) {
  add_rule(schema, parse_json(R"({"anyOf": [{"required": ["add_generation_prompt"],
                                  "properties": {"add_generation_prompt": {"const": false}}},
      {"properties": {"continue_final_message": {"enum": [false, null]}}}]})"));
}

}  // namespace pagoda
