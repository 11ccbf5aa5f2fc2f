#include "answer/tool_messages.h"

#include "core/json.h"

namespace pagoda {
namespace {

using Json = OrderedJson;

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

// Writes a call. A text as its arguments stays as it is, because it holds JSON.
std::string call_text(const Json& call) {
  const Json& function = call.at("function");
  const Json arguments = function.value("arguments", Json());
  std::string text;
  if (arguments.is_string())
    text = arguments.get<std::string>();
  else if (!arguments.is_null())
    text = json_text(arguments);
  if (text.empty()) text = "{}";
  return "<tool_call>\n{\"name\": " + json_text(function.at("name")) + ", \"arguments\": " + text +
         "}\n</tool_call>";
}

}  // namespace

bool has_calls(const OrderedJson& message) {
  const auto calls = message.find("tool_calls");
  return calls != message.end() && calls->is_array() && !calls->empty();
}

std::string content_text(const OrderedJson& message) {
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

void write_calls_as_text(OrderedJson& message) {
  if (has_calls(message)) {
    std::string text = content_text(message);
    for (const Json& call : message.at("tool_calls"))
      text += (text.empty() ? "" : "\n") + call_text(call);
    message["content"] = text;
  }
  message.erase("tool_calls");
}

void write_result_as_text(OrderedJson& message) {
  message = {{"role", "user"},
             {"content", "<tool_response>\n" + content_text(message) + "\n</tool_response>"}};
}

void describe_tools(OrderedJson& messages, const OrderedJson& tools) {
  const std::string role = messages.at(0).at("role").get<std::string>();
  if (role == "system" || role == "developer") {
    messages[0]["content"] = content_text(messages[0]) + "\n\n" + description(tools);
  } else {
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", description(tools)}});
  }
}

}  // namespace pagoda
