#include "server/chat_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "server/json_body.h"
#include "server/request_json.h"

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};
constexpr std::array<std::string_view, 3> kTextParts = {"text", "input_text", "output_text"};

constexpr std::string_view kMessagesSchema =
    R"({"type": "array", "minItems": 1, "items": {"type": "object",
  "required": ["role"], "properties": {
    "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
    "content": {"anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {"type": "object",
      "required": ["type", "text"], "properties": {"type": {"enum": ["text"]}, "text": {"type": "string"}}}}]},
    "name": {"type": "string"}}}})";

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
    if (message.at("role") == "assistant") return {};
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
  for (const RequestJson& part : *content) {
    if (auto error = check_part(index, part, text)) return error;
  }
  return {};
}

MaybeError check_message(std::size_t index, const RequestJson& message, std::string& text) {
  if (!message.is_object()) {
    return message_error(index,
                         fmt::format("': expected an object, got {}", type_in_words(message)));
  }
  const auto role = message.find("role");
  if (role == message.end() || !role->is_string())
    return message_error(index, ".role': expected a string");
  const auto& name = role->get_ref<const std::string&>();
  if (std::find(kRoles.begin(), kRoles.end(), name) == kRoles.end()) {
    return message_error(
        index,
        fmt::format(".role': expected one of system, developer, user, assistant and tool, got '{}'",
                    name));
  }
  return check_content(index, message, text);
}

MaybeError read_messages(const RequestJson& value, ChatPrompt& prompt) {
  if (!value.is_array()) return wrong_type("messages", "a list of messages", value);
  if (value.empty())
    return bad_request("messages", "'messages': expected at least one message, got an empty list");
  if (value.size() > kMaxMessages) {
    return bad_request("messages", fmt::format("'messages': expected at most {} messages, got {}",
                                               kMaxMessages, value.size()));
  }
  std::string text;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (auto error = check_message(i, value[i], text)) return error;
  }
  if (value.back().at("role") == "assistant") prompt.last_message_text = text;
  prompt.messages_json = to_json_text(value);
  return {};
}

MaybeError read_template_kwargs(const RequestJson& value, ChatPrompt& prompt) {
  if (!value.is_object()) return wrong_type("chat_template_kwargs", "an object", value);
  prompt.template_kwargs_json = to_json_text(value);
  return {};
}

}  // namespace

std::vector<Field> chat_prompt_field_table(ChatPrompt& prompt) {
  return {
      {.name = "messages",
       .target =
           CustomField{[&prompt](const RequestJson& value) { return read_messages(value, prompt); },
                       kMessagesSchema},
       .required = true},
      {.name = "chat_template_kwargs",
       .target = CustomField{[&prompt](const RequestJson& value) {
                               return read_template_kwargs(value, prompt);
                             },
                             R"({"type": ["object", "null"]})"},
       .description = "Further variables for the chat template."},
      {.name = "add_generation_prompt", .target = &prompt.add_generation_prompt},
      {.name = "continue_final_message",
       .target = &prompt.continue_final_message,
       .description = "Goes on with the last message; needs add_generation_prompt to be false."},
      {.name = "add_special_tokens",
       .target = &prompt.add_special_tokens,
       .description = "Besides those that the template writes."},
  };
}

std::optional<ApiError> check_together(const ChatPrompt& prompt) {
  if (!prompt.continue_final_message || !prompt.add_generation_prompt) return {};
  return bad_request("continue_final_message",
                     "'continue_final_message' and 'add_generation_prompt' must not both be true");
}

std::vector<Field> chat_field_table(ChatRequest& request) {
  std::vector<Field> table = generation_field_table(request.generation);
  const std::vector<Field> prompt = chat_prompt_field_table(request.prompt);
  table.insert(table.end(), prompt.begin(), prompt.end());
  table.push_back({.name = "max_tokens",
                   .target = &request.generation.max_tokens,
                   .range = {.minimum = 1},
                   .description = "Of the answer; the rest of the context where it is left out."});
  table.push_back({.name = "max_completion_tokens",
                   .target = &request.max_completion_tokens,
                   .range = {.minimum = 1},
                   .description = "The newer name of max_tokens; goes before it."});
  table.push_back({.name = "logprobs", .target = &request.logprobs});
  table.push_back({.name = "top_logprobs",
                   .target = &request.top_logprobs,
                   .range = {.minimum = 0, .maximum = kMaxLogprobs},
                   .description = "The likeliest tokens at each place; needs logprobs."});
  for (const std::string_view name :
       {"tools", "functions", "audio", "web_search_options", "reasoning_effort", "chat_template",
        "documents", "mm_processor_kwargs", "media_io_kwargs", "thinking_token_budget"}) {
    table.push_back({.name = name, .target = RefusedField{}});
  }
  table.push_back({.name = "tool_choice", .target = RefusedField{R"("none")"}});
  table.push_back({.name = "function_call", .target = RefusedField{R"("none")"}});
  table.push_back({.name = "modalities", .target = RefusedField{R"(["text"])"}});
  table.push_back({.name = "verbosity", .target = RefusedField{R"("medium")"}});
  for (const std::string_view name : {"parallel_tool_calls", "include_reasoning"}) {
    table.push_back({.name = name, .target = IgnoredField{}});
  }
  return table;
}

ApiResult<ChatRequest> read_chat_request(const std::string& body,
                                         std::vector<std::string>& unknown_names) {
  auto parsed = parse_json_body(body);
  if (auto* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  ChatRequest request;
  if (auto error =
          read_fields(std::get<RequestJson>(parsed), chat_field_table(request), unknown_names)) {
    return std::move(*error);
  }
  if (request.max_completion_tokens) request.generation.max_tokens = request.max_completion_tokens;
  if (auto error = check_together(request.generation)) return std::move(*error);
  if (auto error = check_together(request.prompt)) return std::move(*error);
  if (request.top_logprobs > 0 && !request.logprobs) {
    return bad_request("top_logprobs", "'top_logprobs' needs 'logprobs' to be true");
  }
  return request;
}

}  // namespace pagoda
