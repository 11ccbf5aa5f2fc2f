#include "server/anthropic/message_input.h"

#include <fmt/format.h>

#include <span>
#include <string>

#include "answer/answer_content.h"
#include "core/json.h"
#include "server/fields/chat_prompt_fields.h"
#include "server/fields/field_reader.h"

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

// A first block of `system` that begins so, on one line, says whom to bill.
constexpr std::string_view kBillingMark = "x-anthropic-billing-header:";

ApiError block_error(std::size_t index, std::string_view rest) {
  return bad_request("messages", fmt::format("'messages[{}]{}", index, rest));
}

bool has_text(const RequestJson& object, const char* key) {
  return value_of(object, key).is_string();
}

bool is_text_block(const RequestJson& block) {
  return block.is_object() && has_text(block, "text") &&
         value_of(block, "type") == RequestJson("text");
}

// Returns the texts of blocks, joined by newlines; nullopt if one is no text block.
std::optional<std::string> joined_texts(std::span<const RequestJson> blocks) {
  if (blocks.size() > kMaxParts) return {};
  std::string text;
  for (const RequestJson& block : blocks) {
    if (!is_text_block(block)) return {};
    text += (text.empty() ? "" : "\n") + block.at("text").get<std::string>();
  }
  return text;
}

std::span<const RequestJson> blocks_of(const RequestJson& list) {
  return list.get_ref<const RequestJson::array_t&>();
}

// Returns a text, or a list's joined texts; nullopt for other content.
std::optional<std::string> block_text(const RequestJson& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return {};
  return joined_texts(blocks_of(content));
}

bool only_bills(const RequestJson& block) {
  if (!is_text_block(block)) return false;
  const auto& text = block.at("text").get_ref<const std::string&>();
  return text.starts_with(kBillingMark) && text.find('\n') == std::string::npos;
}

// Says what is wrong with a block that is not read.
std::string unread_block(const RequestJson& type) {
  if (!type.is_string()) return "expected blocks with a 'type' that is a string";
  const auto& name = type.get_ref<const std::string&>();
  if (name == "image" || name == "document")
    return fmt::format("{}s are not read, only texts", name);
  return fmt::format("blocks of the type '{}' are not supported", name);
}

// Says what is wrong with content in which block_text() finds no text.
std::string unread_content(const RequestJson& content) {
  if (content.is_array()) {
    for (const RequestJson& block : content) {
      if (block.is_object() && value_of(block, "type") != RequestJson("text"))
        return unread_block(value_of(block, "type"));
    }
  }
  return fmt::format("expected a string or a list of at most {} text blocks", kMaxParts);
}

// A translator of one message to chat messages. Tool results become messages of their own.
class MessageTranslator {
 public:
  // `last_user`: the index of the last message of the user.
  MessageTranslator(std::size_t index, std::size_t last_user, RequestJson& messages)
      : index_(index), last_user_(last_user), messages_(messages) {}

  MaybeError translate(const RequestJson& message) {
    if (!message.is_object())
      return block_error(index_,
                         fmt::format("': expected an object, got {}", type_in_words(message)));
    const RequestJson& role = value_of(message, "role");
    const RequestJson& content = value_of(message, "content");
    if (!content.is_string() && !content.is_array())
      return block_error(index_, ".content': expected a string or a list of blocks");
    if (role == RequestJson("system")) return add_system(message);
    const bool is_users = role == RequestJson("user");
    if (!is_users && role != RequestJson("assistant"))
      return block_error(index_, ".role': expected user, assistant or system");
    message_ = {{"role", role}, {"content", nullptr}};
    if (content.is_string()) {
      message_["content"] = content;
    } else if (auto error = take_all(content)) {
      return error;
    }
    if (is_users && message_.at("content").is_null()) {
      if (has_results_) return {};
      message_["content"] = "";
    }
    messages_.push_back(message_);
    return {};
  }

 private:
  MaybeError add_system(const RequestJson& message) {
    const RequestJson& content = value_of(message, "content");
    const auto text = block_text(content);
    if (!text)
      return block_error(index_, ".content': in a system message " + unread_content(content));
    const bool is_over =
        value_of(message, "clear_at") == RequestJson("next_user_message") && index_ < last_user_;
    if (!is_over) messages_.push_back({{"role", "system"}, {"content", *text}});
    return {};
  }

  MaybeError take_all(const RequestJson& blocks) {
    if (blocks.size() > kMaxParts)
      return block_error(index_, fmt::format(".content': expected at most {} blocks", kMaxParts));
    for (const RequestJson& block : blocks) {
      if (auto error = take(block)) return error;
    }
    return {};
  }

  MaybeError take(const RequestJson& block) {
    if (!block.is_object())
      return block_error(index_, ".content': expected blocks that are objects");
    const RequestJson& type = value_of(block, "type");
    if (type == RequestJson("text")) return add_text(block);
    if (type == RequestJson("thinking")) return add_thought(block);
    if (type == RequestJson("redacted_thinking")) return {};
    if (type == RequestJson("tool_use")) return add_call(block);
    if (type == RequestJson("tool_result")) return add_result(block);
    return block_error(index_, ".content': " + unread_block(type));
  }

  MaybeError add_text(const RequestJson& block) {
    if (!has_text(block, "text"))
      return block_error(index_, ".content': expected a block of the type text with 'text'");
    RequestJson& content = message_["content"];
    auto text = block.at("text").get<std::string>();
    const bool is_answer = message_.at("role") == RequestJson("assistant");
    if (!content.is_null())
      text = fmt::format("{}{}{}", content.get<std::string>(),
                         is_answer ? before_further(text) : "\n", text);
    content = std::move(text);
    return {};
  }

  MaybeError add_thought(const RequestJson& block) {
    if (!has_text(block, "thinking"))
      return block_error(index_,
                         ".content': expected a block of the type thinking with 'thinking'");
    const auto text = block.at("thinking").get<std::string>();
    const RequestJson& before = value_of(message_, "reasoning_content");
    message_["reasoning_content"] =
        before.is_null() ? text : before.get<std::string>() + "\n" + text;
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
    if (!has_text(block, "tool_use_id"))
      return block_error(index_, ".content': expected a tool_result with 'tool_use_id'");
    const RequestJson& content = value_of(block, "content");
    const auto text = content.is_null() ? std::string() : block_text(content);
    if (!text) return block_error(index_, ".content': in a tool_result " + unread_content(content));
    has_results_ = true;
    messages_.push_back(
        {{"role", "tool"}, {"tool_call_id", block.at("tool_use_id")}, {"content", *text}});
    return {};
  }

  std::size_t index_, last_user_;
  RequestJson& messages_;
  RequestJson message_;
  bool has_results_ = false;
};

// Returns a schema of this file with its placeholders ({text}, {block}, {texts}, {parts}) replaced.
std::string with_texts(std::string_view schema) {
  const std::string text = R"({"type": "string", "maxLength": 16777216})";
  const std::string block = fmt::format(
      R"({{"title": "TextBlock", "type": "object", "required": ["type", "text"], "properties": {{"type": {{"const": "text"}}, "text": {}}}}})",
      text);
  const std::string texts =
      fmt::format(R"({{"anyOf": [{}, {{"type": "array", "maxItems": {}, "items": {}}}]}})", text,
                  kMaxParts, block);
  return fmt::format(fmt::runtime(schema), fmt::arg("text", text), fmt::arg("block", block),
                     fmt::arg("texts", texts), fmt::arg("parts", kMaxParts));
}

}  // namespace

std::optional<ApiError> read_anthropic_messages(const RequestJson& value, RequestJson& messages) {
  if (auto error = check_message_list(value)) return error;
  std::size_t last_user = 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i].is_object() && value_of(value[i], "role") == RequestJson("user")) last_user = i;
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (auto error = MessageTranslator(i, last_user, messages).translate(value[i])) return error;
  }
  return {};
}

std::optional<ApiError> read_anthropic_system(const RequestJson& value, RequestJson& message) {
  const bool bills = value.is_array() && !value.empty() && only_bills(value.front());
  const auto text = bills ? joined_texts(blocks_of(value).subspan(1)) : block_text(value);
  if (!text) return wrong_type("system", "a string or a list of text blocks", value);
  if (!text->empty()) message = {{"role", "system"}, {"content", *text}};
  return {};
}

std::string_view anthropic_messages_schema() {
  static const std::string schema = with_texts(
      R"({{"type": "array", "minItems": 1, "maxItems": 4096, "items": {{"anyOf": [
        {{"type": "object", "required": ["role", "content"], "properties": {{"role": {{"const": "system"}},
          "content": {texts}}}}},
        {{"title": "AnthropicMessage", "type": "object", "required": ["role", "content"], "properties": {{"role": {{"enum": ["user", "assistant"]}},
        "content": {{"anyOf": [{text}, {{"type": "array", "maxItems": {parts}, "items": {{"anyOf": [{block},
          {{"type": "object", "required": ["type", "thinking"], "properties": {{"type": {{"const": "thinking"}},
            "thinking": {text}}}}},
          {{"type": "object", "required": ["type"], "properties": {{"type": {{"const": "redacted_thinking"}}}}}},
          {{"type": "object", "required": ["type", "tool_use_id"], "properties": {{"type": {{"const": "tool_result"}},
            "tool_use_id": {text}, "content": {{"anyOf": [{texts}, {{"type": "null"}}]}}}}}},
          {{"type": "object", "required": ["type", "id", "name", "input"], "properties": {{"type": {{"const": "tool_use"}},
            "id": {text}, "name": {text}, "input": {{"type": "object"}}}}}}]}}}}]}}}}}}]}}}})");
  return schema;
}

std::string_view anthropic_system_schema() {
  static const std::string schema = with_texts("{texts}");
  return schema;
}

}  // namespace pagoda
