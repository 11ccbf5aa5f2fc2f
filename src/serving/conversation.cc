#include "serving/conversation.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "answer/tool_messages.h"
#include "core/json.h"
#include "serving/call_completion.h"

namespace pagoda {
namespace {

using Json = OrderedJson;

constexpr std::string_view kBetweenTexts = "\n\n";
constexpr const char* kBlank = " ";  // an answer's text, for templates that refuse an empty one

bool has_role(const Json& message, std::string_view role) {
  return message.at("role").get_ref<const std::string&>() == role;
}

bool gives_instructions(const Json& message) {
  return has_role(message, "system") || has_role(message, "developer");
}

// Puts a text before a message's content.
void prepend_text(std::string text, Json& message) {
  Json& content = message["content"];
  if (content.is_array()) {
    content.insert(content.begin(), Json{{"type", "text"}, {"text", std::move(text)}});
  } else {
    content = std::move(text) + std::string(kBetweenTexts) + content_text(message);
  }
}

// Gives text beside calls a message of its own.
void split_off_text(Json& messages) {
  Json split = Json::array();
  for (Json& message : messages) {
    if (has_calls(message)) {
      Json calls = {{"role", "assistant"}, {"content", nullptr}};
      calls["tool_calls"] = std::move(message["tool_calls"]);
      message.erase("tool_calls");
      if (!content_text(message).empty()) {
        split.push_back(std::move(message));
        message = std::move(calls);
      } else {
        message["content"] = nullptr;
        message["tool_calls"] = std::move(calls["tool_calls"]);
      }
    }
    split.push_back(std::move(message));
  }
  messages = std::move(split);
}

// Appends a message once for each of its calls, and each call's result behind it. `results`: those
// that follow the message.
void append_split(Json& message, std::span<Json> results, Json& to) {
  const Json calls = std::exchange(message["tool_calls"], Json());
  std::map<std::string, Json*> results_by_id;
  for (Json& result : results)
    results_by_id.emplace(result.at("tool_call_id").get<std::string>(), &result);
  for (const Json& call : calls) {
    message["tool_calls"] = Json::array({call});
    to.push_back(std::exchange(message, Json{{"role", "assistant"}, {"content", nullptr}}));
    const auto found = results_by_id.find(call.at("id").get<std::string>());
    if (found == results_by_id.end()) continue;
    to.push_back(std::exchange(*found->second, Json()));
    results_by_id.erase(found);
  }
  for (Json& result : results) {
    if (!result.is_null()) to.push_back(std::move(result));
  }
}

// Gives each call a message of its own.
void split_calls(Json& messages) {
  Json split = Json::array();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!has_calls(messages[i]) || messages[i]["tool_calls"].size() < 2) {
      split.push_back(std::move(messages[i]));
      continue;
    }
    std::size_t end = i + 1;
    while (end < messages.size() && has_role(messages[end], "tool")) ++end;
    append_split(messages[i], std::span(&messages[i] + 1, end - i - 1), split);
    i = end - 1;
  }
  messages = std::move(split);
}

// Puts a blank answer between a result and a message of the user.
void answer_results(Json& messages) {
  Json answered = Json::array();
  for (Json& message : messages) {
    if (!answered.empty() && has_role(answered.back(), "tool") && has_role(message, "user"))
      answered.push_back({{"role", "assistant"}, {"content", kBlank}});
    answered.push_back(std::move(message));
  }
  messages = std::move(answered);
}

// Puts system and developer messages where a template prints them.
class InstructionPlacer {
 public:
  InstructionPlacer(const MessageTraits& traits, Json& messages)
      : traits_(traits), messages_(messages) {}

  void place() {
    is_answering_ = !has_role(messages_.back(), "user");
    is_alone_ = std::all_of(messages_.begin(), messages_.end(), gives_instructions);
    Json placed = Json::array();
    for (Json& message : messages_) {
      if (gives_instructions(message)) {
        place_one(message, placed);
        continue;
      }
      is_later_ = true;
      if (has_role(message, "user") && !waiting_.empty())
        prepend_text(std::exchange(waiting_, ""), message);
      placed.push_back(std::move(message));
    }
    if (!waiting_.empty()) placed.push_back({{"role", "user"}, {"content", waiting_}});
    messages_ = std::move(placed);
  }

 private:
  void place_one(Json& message, Json& placed) {
    const bool is_developers = has_role(message, "developer");
    const bool system_is_printed = is_printed(traits_.system);
    if (is_printed(is_developers ? traits_.developer : traits_.system) || system_is_printed) {
      if (is_developers && !is_printed(traits_.developer)) message["role"] = "system";
      is_first_printed_ |= !is_later_;
      placed.push_back(std::move(message));
      return;
    }
    const std::string text = content_text(message);
    if (text.empty()) return;
    if (is_first_printed_ && !is_later_) {
      Json& content = placed.back()["content"];
      content = content_text(placed.back()) + std::string(kBetweenTexts) + text;
    } else {
      waiting_ += (waiting_.empty() ? "" : kBetweenTexts);
      waiting_ += text;
    }
  }

  // Returns whether the template prints a message of this role at the place that is reached.
  bool is_printed(const InstructionPlaces& places) const {
    if (is_alone_ && !places.alone) return false;
    if (is_later_) return is_first_printed_ ? places.later_again : places.later;
    if (is_first_printed_) return places.second;
    return places.first && (places.before_answering || !is_answering_);
  }

  const MessageTraits& traits_;
  Json& messages_;
  bool is_answering_ = false;
  bool is_alone_ = false;          // there are no other messages
  bool is_first_printed_ = false;  // an instruction has been placed at the beginning
  bool is_later_ = false;          // another message has come
  std::string waiting_;            // for the user's next message
};

// Joins messages of a role that follow one another, unless they have calls.
void join_rows(std::string_view role, Json& messages) {
  Json joined = Json::array();
  for (Json& message : messages) {
    const bool joins = !joined.empty() && has_role(message, role) && !has_calls(message) &&
                       has_role(joined.back(), role) && !has_calls(joined.back());
    if (!joins) {
      joined.push_back(std::move(message));
      continue;
    }
    Json& content = joined.back()["content"];
    content = content_text(joined.back()) + std::string(kBetweenTexts) + content_text(message);
  }
  messages = std::move(joined);
}

// Makes the content of answers alike, however an API wrote it: null beside calls without text, else
// a text. Some templates tell calls by that, and some refuse an empty text.
void complete_contents(const MessageTraits& traits, Json& messages) {
  for (Json& message : messages) {
    if (!has_role(message, "assistant")) continue;
    Json& content = message["content"];
    if (has_calls(message)) {
      if (content_text(message).empty()) content = nullptr;
    } else if (!traits.takes_empty_answers && content_text(message).empty()) {
      content = kBlank;
    } else if (content.is_null()) {
      content = "";
    }
  }
}

void fit_calls(const MessageTraits& traits, bool in_words, Json& messages) {
  complete_contents(traits, messages);
  complete_calls(traits, messages);
  const bool takes_calls = traits.takes_calls && !in_words;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const bool lacks_results = i + 1 < messages.size() && has_role(messages[i + 1], "user");
    if (!takes_calls || (lacks_results && !traits.takes_calls_without_results))
      write_calls_as_text(messages[i]);
    if (has_role(messages[i], "tool") && (!traits.takes_results || in_words))
      write_result_as_text(messages[i]);
  }
  if (!takes_calls) return;
  if (!traits.takes_users_after_results) answer_results(messages);
  complete_arguments(traits, messages);
  if (!traits.takes_text_beside_calls && traits.takes_text_before_calls) split_off_text(messages);
  if (!traits.takes_several_calls) split_calls(messages);
}

// Completes the tools, and adds the variable by which the template takes them.
void fit_tools(const TemplateTraits& traits, ChatPrompt& prompt) {
  if (traits.needs_whole_tools) {
    Json tools = parse_ordered_json(prompt.tools_json);
    complete_tools(tools);
    prompt.tools_json = json_text(tools);
  }
  if (traits.tool_variable == ToolVariable::kTools) return;
  Json variables = parse_ordered_json(prompt.template_kwargs_json);
  Json& tools = variables[std::string(variable_name(traits.tool_variable))];
  if (tools.is_null()) tools = parse_ordered_json(prompt.tools_json);
  prompt.template_kwargs_json = json_text(variables);
}

}  // namespace

Status fit_conversation(const TemplateTraits& traits, bool tools_in_words, ChatPrompt& prompt) {
  Json messages = parse_ordered_json(std::exchange(prompt.messages_json, ""));
  if (prompt.continue_final_message && has_calls(messages.back())) {
    return invalid_argument(
               "'continue_final_message': expected a last message without 'tool_calls'")
        .of_field("continue_final_message");
  }
  const bool in_words = tools_in_words && !prompt.tools_json.empty();
  const bool has_tools = !in_words && !prompt.tools_json.empty();
  const MessageTraits& message_traits = has_tools ? traits.with_tools : traits.without_tools;
  fit_calls(message_traits, in_words, messages);
  if (in_words) describe_tools(messages, parse_ordered_json(std::exchange(prompt.tools_json, "")));
  if (has_tools) fit_tools(traits, prompt);
  InstructionPlacer(message_traits, messages).place();
  if (!message_traits.takes_users_in_a_row) join_rows("user", messages);
  if (!message_traits.takes_answers_in_a_row) join_rows("assistant", messages);
  prompt.messages_json = json_text(messages);
  return ok_status();
}

std::vector<std::string> names_of_tools(const std::string& tools_json) {
  std::vector<std::string> names;
  if (tools_json.empty()) return names;
  for (const Json& tool : parse_ordered_json(tools_json))
    names.push_back(tool.at("function").at("name").get<std::string>());
  return names;
}

}  // namespace pagoda
