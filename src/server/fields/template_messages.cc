#include "server/fields/template_messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "answer/tool_definition.h"
#include "core/json.h"
#include "server/fields/field_reader.h"

namespace pagoda {
namespace {

bool is_custom(const RequestJson& call) {
  return value_of(call, "type") == RequestJson("custom");
}

// Returns whether a message has OpenAI's older form of a call, or of its result.
bool is_of_function(const RequestJson& message) {
  return message.at("role") == "function" || value_of(message, "function_call").is_object();
}

bool has_custom_call(const RequestJson& message) {
  const RequestJson& calls = value_of(message, "tool_calls");
  return calls.is_array() && std::any_of(calls.begin(), calls.end(), is_custom);
}

bool has_one_thought_name(const RequestJson& message) {
  return value_of(message, kThoughtNames[0]).is_string() !=
         value_of(message, kThoughtNames[1]).is_string();
}

// Gives a thought with one of its names the other one too.
void name_thought_twice(RequestJson& message) {
  const std::size_t given = value_of(message, kThoughtNames[0]).is_string() ? 0 : 1;
  RequestJson thought = value_of(message, kThoughtNames[given]);
  message[std::string(kThoughtNames[1 - given])] = std::move(thought);
}

// Makes calls of custom tools calls of functions whose only argument is the input.
void make_functions(RequestJson& calls) {
  for (RequestJson& call : calls) {
    if (!is_custom(call)) continue;
    const RequestJson& custom = call.at("custom");
    RequestJson arguments = RequestJson::object();
    arguments[std::string(kCustomInput)] = custom.at("input");
    RequestJson function = {{"name", custom.at("name")}, {"arguments", std::move(arguments)}};
    call["type"] = "function";
    call["function"] = std::move(function);
    call.erase("custom");
  }
}

class MessageRewriter {
 public:
  std::string text_of(std::size_t index, const RequestJson& message) {
    const bool is_kept =
        !is_of_function(message) && !has_custom_call(message) && !has_one_thought_name(message);
    if (is_kept) return json_text(message);
    return json_text(rewritten(index, message));
  }

 private:
  RequestJson rewritten(std::size_t index, RequestJson message) {
    if (has_custom_call(message)) make_functions(message["tool_calls"]);
    if (is_of_function(message)) make_tools(index, message);
    if (has_one_thought_name(message)) name_thought_twice(message);
    return message;
  }

  // Rewrites a call or a result in OpenAI's older form.
  void make_tools(std::size_t index, RequestJson& message) {
    if (message.at("role") == "function") {
      message["role"] = "tool";
      message["tool_call_id"] = last_id_;
    } else {
      // Mistral's templates take only ids of nine letters and digits.
      last_id_ = fmt::format("call{:05}", index);
      message["tool_calls"] = RequestJson::array(
          {{{"id", last_id_}, {"type", "function"}, {"function", message["function_call"]}}});
    }
    message.erase("function_call");
  }

  std::string last_id_ = "call00000";  // of the call that the next result answers
};

}  // namespace

std::string messages_for_templates(const RequestJson& messages) {
  MessageRewriter rewriter;
  std::string text;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    text += i == 0 ? "[" : ",";
    text += rewriter.text_of(i, messages[i]);
  }
  return text + "]";
}

}  // namespace pagoda
