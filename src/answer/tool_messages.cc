#include "answer/tool_messages.h"

#include "core/json.h"

namespace pagoda {
namespace {

using Json = OrderedJson;

// Returns a message's content as one string.
std::string content_text(const Json& message) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return "";
  if (content->is_string()) return content->get<std::string>();
  std::string text;
  for (const Json& part : *content) {
    if (!text.empty()) text += '\n';
    if (part.is_string()) text += part.get<std::string>();
    if (part.is_object() && part.contains("text")) text += part.at("text").get<std::string>();
  }
  return text;
}

std::string description(const Json& tools) {
  std::string text =
      "You can call functions to help with the user's request. Each line describes one:\n<tools>\n";
  for (const Json& tool : tools) text += json_text(tool) + "\n";
  text +=
      "</tools>\nTo call a function, answer with its name and its arguments as JSON between these "
      "tags, one pair of tags for each call:\n<tool_call>\n{\"name\": <name>, \"arguments\": "
      "<object>}\n</tool_call>";
  return text;
}

// Writes a call. Its arguments are an object, or a text that holds one.
std::string call_text(const Json& call) {
  const Json& function = call.at("function");
  const auto arguments = function.find("arguments");
  std::string text;
  if (arguments != function.end() && arguments->is_object()) text = json_text(*arguments);
  if (arguments != function.end() && arguments->is_string()) text = arguments->get<std::string>();
  if (text.empty()) text = "{}";
  return "<tool_call>\n{\"name\": " + json_text(function.at("name")) + ", \"arguments\": " + text +
         "}\n</tool_call>";
}

void write_calls_into_content(Json& message) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end()) return;
  if (calls->is_array() && !calls->empty()) {
    std::string text = content_text(message);
    for (const Json& call : *calls) text += (text.empty() ? "" : "\n") + call_text(call);
    message["content"] = text;
  }
  message.erase("tool_calls");
}

}  // namespace

std::string describe_tools(std::string_view messages_json, std::string_view tools_json) {
  const Json tools = parse_ordered_json(tools_json);
  Json messages = parse_ordered_json(messages_json);
  for (Json& message : messages) {
    write_calls_into_content(message);
    if (message.at("role") != "tool") continue;
    message = {{"role", "user"},
               {"content", "<tool_response>\n" + content_text(message) + "\n</tool_response>"}};
  }
  const std::string role = messages.at(0).at("role").get<std::string>();
  if (role == "system" || role == "developer") {
    messages[0]["content"] = content_text(messages[0]) + "\n\n" + description(tools);
  } else {
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", description(tools)}});
  }
  return json_text(messages);
}

}  // namespace pagoda
