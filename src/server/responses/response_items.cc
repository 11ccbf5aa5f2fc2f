#include "server/responses/response_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "answer/answer_content.h"
#include "core/json.h"
#include "server/fields/chat_prompt_fields.h"
#include "server/fields/field_reader.h"
#include "server/responses/response_request.h"

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

constexpr std::array<std::string_view, 4> kItemRoles = {"system", "developer", "user", "assistant"};

ApiError item_error(std::size_t index, std::string_view rest) {
  return bad_request("input", fmt::format("'input[{}]{}", index, rest));
}

constexpr std::array<std::string_view, 6> kTextTypes = {
    "input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal"};

// A type of calls of a tool that is no function, as a function's call.
struct CallType {
  std::string_view type, function;
  std::string_view arguments;  // the key of the object with the arguments
};
constexpr CallType kCallTypes[] = {{"local_shell_call", "local_shell", "action"},
                                   {"shell_call", "shell", "action"},
                                   {"apply_patch_call", "apply_patch", "operation"}};
constexpr std::array<std::string_view, 4> kOutputTypes = {
    "custom_tool_call_output", "local_shell_call_output", "shell_call_output",
    "apply_patch_call_output"};
constexpr std::array<std::string_view, 2> kSearchTypes = {"web_search_call", "file_search_call"};
constexpr std::array<std::string_view, 3> kUnreadParts = {"input_image", "input_file",
                                                          "input_audio"};

template <typename Names>
bool is_one_of(const RequestJson& value, const Names& names) {
  return value.is_string() &&
         std::find(names.begin(), names.end(), value.get_ref<const std::string&>()) != names.end();
}

// Returns a text, or the joined texts of a list of parts; nullopt for other content.
std::optional<std::string> text_in(const RequestJson& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array() || content.size() > kMaxParts) return {};
  std::string text;
  for (const RequestJson& part : content) {
    if (!part.is_object()) return {};
    const RequestJson& type = value_of(part, "type");
    if (!is_one_of(type, kTextTypes)) return {};
    const RequestJson& found = value_of(part, type == RequestJson("refusal") ? "refusal" : "text");
    if (!found.is_string()) return {};
    text += found.get<std::string>();
  }
  return text;
}

// Says what is wrong with content that has no text.
std::string unread_content(const RequestJson& content) {
  if (content.is_array()) {
    for (const RequestJson& part : content) {
      if (part.is_object() && is_one_of(value_of(part, "type"), kUnreadParts))
        return "images, files and audio are not read, only texts";
    }
  }
  return "expected a string, or a list of parts with texts";
}

// Returns the id by which a call and its output know each other.
const RequestJson& call_id_of(const RequestJson& item) {
  const RequestJson& id = value_of(item, "call_id");
  return id.is_null() ? value_of(item, "id") : id;
}

// A builder of chat messages from items.
class MessageBuilder {
 public:
  explicit MessageBuilder(RequestJson& messages) : messages_(messages) {}

  MaybeError add(std::size_t index, const RequestJson& item) {
    if (!item.is_object())
      return item_error(index, fmt::format("': expected an object, got {}", type_in_words(item)));
    const RequestJson& type = value_of(item, "type");
    if (type.is_null() || type == RequestJson("message")) return add_message(index, item);
    if (type == RequestJson("function_call")) return add_call(index, item);
    if (type == RequestJson("function_call_output")) return add_output(index, item);
    if (type == RequestJson("reasoning")) return add_reasoning(index, item);
    return add_of_other_tool(index, item, type);
  }

  // Ends the list. A thought that no item follows becomes a message of the assistant.
  void finish() {
    if (thought_) assistant();
  }

 private:
  MaybeError add_message(std::size_t index, const RequestJson& item) {
    const RequestJson& role = value_of(item, "role");
    if (!is_one_of(role, kItemRoles))
      return item_error(index, ".role': expected one of system, developer, user and assistant");
    const auto text = text_in(value_of(item, "content"));
    if (!text) return item_error(index, ".content': " + unread_content(value_of(item, "content")));
    if (role == RequestJson("assistant")) {
      add_answer(*text);
      return {};
    }
    finish();
    messages_.push_back({{"role", role}, {"content", *text}});
    return {};
  }

  // Adds a text of the assistant. Behind calls it is a part of their message, so that their outputs
  // follow them.
  void add_answer(const std::string& text) {
    RequestJson& message = assistant();
    RequestJson& content = message["content"];
    if (content.is_null()) {
      content = text;
    } else if (message.contains("tool_calls")) {
      content = fmt::format("{}{}{}", content.get<std::string>(), before_further(text), text);
    } else {
      messages_.push_back({{"role", "assistant"}, {"content", text}});
    }
  }

  MaybeError add_call(std::size_t index, const RequestJson& item) {
    for (const char* key : {"call_id", "name", "arguments"}) {
      if (!value_of(item, key).is_string())
        return item_error(index, fmt::format(".{}': expected a string", key));
    }
    push_call(item.at("call_id"), item.at("name"), item.at("arguments"));
    return {};
  }

  void push_call(const RequestJson& id, const RequestJson& name, const RequestJson& arguments) {
    assistant()["tool_calls"].push_back({{"id", id},
                                         {"type", "function"},
                                         {"function", {{"name", name}, {"arguments", arguments}}}});
  }

  MaybeError add_of_other_tool(std::size_t index, const RequestJson& item,
                               const RequestJson& type) {
    if (is_one_of(type, kSearchTypes)) return {};
    if (type == RequestJson("custom_tool_call")) return add_custom_call(index, item);
    if (is_one_of(type, kOutputTypes)) return add_other_output(index, item);
    for (const CallType& known : kCallTypes) {
      if (type == RequestJson(known.type)) return add_other_call(index, item, known);
    }
    return item_error(index, fmt::format(".type': {} is not supported", json_text(type)));
  }

  MaybeError add_custom_call(std::size_t index, const RequestJson& item) {
    for (const char* key : {"call_id", "name", "input"}) {
      if (!value_of(item, key).is_string())
        return item_error(index, fmt::format(".{}': expected a string", key));
    }
    assistant()["tool_calls"].push_back(
        {{"id", item.at("call_id")},
         {"type", "custom"},
         {"custom", {{"name", item.at("name")}, {"input", item.at("input")}}}});
    return {};
  }

  MaybeError add_other_call(std::size_t index, const RequestJson& item, const CallType& type) {
    const RequestJson& arguments = value_of(item, type.arguments);
    if (!arguments.is_object())
      return item_error(index, fmt::format(".{}': expected an object", type.arguments));
    if (!call_id_of(item).is_string()) return item_error(index, ".call_id': expected a string");
    push_call(call_id_of(item), type.function, arguments);
    return {};
  }

  // Adds the output of a tool that is no function. Its form differs between tools.
  MaybeError add_other_output(std::size_t index, const RequestJson& item) {
    if (!call_id_of(item).is_string()) return item_error(index, ".call_id': expected a string");
    const RequestJson& output = value_of(item, "output");
    auto text = output.is_null() ? std::string() : text_in(output);
    push_output(call_id_of(item), text ? *text : json_text(output));
    return {};
  }

  void push_output(const RequestJson& id, const std::string& text) {
    finish();
    messages_.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", text}});
  }

  MaybeError add_output(std::size_t index, const RequestJson& item) {
    const RequestJson& id = value_of(item, "call_id");
    if (!id.is_string()) return item_error(index, ".call_id': expected a string");
    const RequestJson& output = value_of(item, "output");
    const auto text = output.is_null() ? std::string() : text_in(output);
    if (!text) return item_error(index, ".output': " + unread_content(output));
    push_output(id, *text);
    return {};
  }

  MaybeError add_reasoning(std::size_t index, const RequestJson& item) {
    for (const char* key : {"summary", "content"}) {
      const RequestJson& texts = value_of(item, key);
      const auto text = texts.is_null() ? std::string() : text_in(texts);
      if (!text)
        return item_error(index, fmt::format(".{}': expected a list of parts with texts", key));
      thought_ = thought_.value_or("") + *text;
    }
    return {};
  }

  // Returns the assistant's message that the next item belongs to. Appends one if needed.
  RequestJson& assistant() {
    const bool goes_on =
        !thought_ && !messages_.empty() && messages_.back().at("role") == RequestJson("assistant");
    if (!goes_on) messages_.push_back({{"role", "assistant"}, {"content", nullptr}});
    if (thought_ && !thought_->empty()) messages_.back()["reasoning_content"] = *thought_;
    thought_.reset();
    return messages_.back();
  }

  RequestJson& messages_;
  std::optional<std::string> thought_;  // of the next message
};

}  // namespace

std::optional<ApiError> read_input_items(const RequestJson& value, RequestJson& messages) {
  if (value.is_string()) {
    messages.push_back({{"role", "user"}, {"content", value}});
    return {};
  }
  if (!value.is_array()) return wrong_type("input", "a string or a list of items", value);
  if (value.empty()) return bad_request("input", "'input': expected at least one item, got none");
  if (value.size() > kMaxInputItems) {
    return bad_request("input", fmt::format("'input': expected at most {} items, got {}",
                                            kMaxInputItems, value.size()));
  }
  MessageBuilder builder(messages);
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (auto error = builder.add(i, value[i])) return error;
  }
  builder.finish();
  return {};
}

std::string_view input_schema() {
  static const std::string schema = [] {
    const std::string text = R"({"type": "string", "maxLength": 16777216})";
    const std::string texts = fmt::format(
        R"({{"anyOf": [{0}, {{"type": "array", "maxItems": {1}, "items": {{"anyOf": [
          {{"type": "object", "required": ["type", "text"], "properties": {{"text": {0}, "type": {{"enum":
            ["input_text", "output_text", "text", "summary_text", "reasoning_text"]}}}}}},
          {{"type": "object", "required": ["type", "refusal"], "properties": {{"refusal": {0},
            "type": {{"const": "refusal"}}}}}}]}}}}]}})",
        text, kMaxParts);
    return fmt::format(
        R"({{"anyOf": [{0}, {{"type": "array", "minItems": 1, "maxItems": {2}, "items": {{"anyOf": [
          {{"type": "object", "required": ["role", "content"], "properties": {{
            "type": {{"enum": ["message", null]}}, "role": {{"enum": ["system", "developer", "user", "assistant"]}},
            "content": {1}}}}},
          {{"type": "object", "required": ["type", "call_id", "name", "arguments"], "properties": {{
            "type": {{"const": "function_call"}}, "call_id": {0}, "name": {0}, "arguments": {0}}}}},
          {{"type": "object", "required": ["type", "call_id"], "properties": {{
            "type": {{"const": "function_call_output"}}, "call_id": {0}, "output": {{"anyOf": [{1}, {{"type": "null"}}]}}}}}},
          {{"type": "object", "required": ["type", "call_id", "name", "input"], "properties": {{
            "type": {{"const": "custom_tool_call"}}, "call_id": {0}, "name": {0}, "input": {0}}}}},
          {{"type": "object", "required": ["type", "call_id"], "properties": {{
            "type": {{"const": "custom_tool_call_output"}}, "call_id": {0}, "output": {{"anyOf": [{1}, {{"type": "null"}}]}}}}}},
          {{"type": "object", "required": ["type"], "properties": {{"type": {{"const": "reasoning"}},
            "summary": {{"anyOf": [{1}, {{"type": "null"}}]}}, "content": {{"anyOf": [{1}, {{"type": "null"}}]}}}}}}]}}}}]}})",
        text, texts, kMaxInputItems);
  }();
  return schema;
}

}  // namespace pagoda
