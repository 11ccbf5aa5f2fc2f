// The APIs whose answers are a message: chat completions and Ollama's chats.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/json.h"
#include "server/sent_back_rig.h"

namespace pagoda {
namespace {

using Json = OrderedJson;

class ChatCompletions : public ApiUnderTest {
 public:
  const char* path() const override { return "/v1/chat/completions"; }

  Json first_request(const ScriptedAnswer& script, int max_tokens) const override {
    Json body = base();
    body["max_tokens"] = max_tokens;
    if (!script.stop.empty()) body["stop"] = script.stop;
    if (script.must_call) body["tool_choice"] = "required";
    if (script.has_one_call) body["parallel_tool_calls"] = false;
    return body;
  }

  Json answer_in(Json body) const override { return body.at("choices").at(0); }

  Json assembled(const std::vector<Json>& events) const override {
    Json choice = {{"message", {{"role", "assistant"}, {"content", ""}}}};
    for (const Json& event : events) {
      const Json& part = event.at("choices").at(0);
      add_delta(part.at("delta"), choice["message"]);
      if (!part.at("finish_reason").is_null()) choice["finish_reason"] = part.at("finish_reason");
    }
    return choice;
  }

  ToldAnswer told(const Json& answer) const override {
    const Json& message = answer.at("message");
    ToldAnswer told = {.content = text_at(message, "content"),
                       .thought = text_at(message, "reasoning_content"),
                       .calls = {},
                       .reason = text_at(answer, "finish_reason")};
    for (const Json& call : message.value("tool_calls", Json::array())) {
      const Json& function = call.at("function");
      told.calls.emplace_back(text_at(function, "name"), text_at(function, "arguments"));
      told.has_broken_call |= !is_json_object(told.calls.back().second);
    }
    if (told.reason == "tool_calls") told.reason = "calls";
    return told;
  }

  Json next_request(const Json& answer) const override {
    Json body = base();
    Json& messages = body["messages"];
    messages.push_back(answer.at("message"));
    for (const Json& call : answer.at("message").value("tool_calls", Json::array())) {
      messages.push_back({{"role", "tool"}, {"tool_call_id", call.at("id")}, {"content", kResult}});
    }
    messages.push_back(message_of("user", kNextQuestion));
    return body;
  }

 private:
  static Json base() {
    return {{"tools", nested_tools()}, {"messages", {message_of("user", kQuestion)}}};
  }

  static void add_delta(const Json& delta, Json& message) {
    for (const char* key : {"content", "reasoning_content"}) {
      if (delta.contains(key)) extend(message, key, text_at(delta, key));
    }
    for (Json call : delta.value("tool_calls", Json::array())) {
      Json& calls = message["tool_calls"];
      const auto index = call.at("index").get<std::size_t>();
      call.erase("index");
      if (index < calls.size()) {
        extend(calls[index]["function"], "arguments", text_at(call.at("function"), "arguments"));
      } else {
        EXPECT_EQ(index, calls.size());
        calls.push_back(std::move(call));
      }
    }
  }
};

class Ollama : public ApiUnderTest {
 public:
  const char* path() const override { return "/api/chat"; }

  Json first_request(const ScriptedAnswer& script, int max_tokens) const override {
    Json body = base();
    body["options"] = {{"num_predict", max_tokens}};
    if (!script.stop.empty()) body["options"]["stop"] = {script.stop};
    if (script.must_call) body["tool_choice"] = "required";
    if (script.has_one_call) body["parallel_tool_calls"] = false;
    return body;
  }

  Json answer_in(Json body) const override { return body; }

  Json assembled(const std::vector<Json>& events) const override {
    Json answer = events.back();
    Json& message = answer["message"];
    message = {{"role", "assistant"}, {"content", ""}};
    for (const Json& event : events) {
      const Json& part = event.at("message");
      for (const char* key : {"content", "thinking"}) {
        if (part.contains(key)) extend(message, key, text_at(part, key));
      }
      for (const Json& call : part.value("tool_calls", Json::array()))
        message["tool_calls"].push_back(call);
    }
    return answer;
  }

  ToldAnswer told(const Json& answer) const override {
    const Json& message = answer.at("message");
    ToldAnswer told = {.content = text_at(message, "content"),
                       .thought = text_at(message, "thinking"),
                       .calls = {},
                       .reason = text_at(answer, "done_reason")};
    for (const Json& call : message.value("tool_calls", Json::array())) {
      const Json& function = call.at("function");
      told.calls.emplace_back(text_at(function, "name"), json_text(function.at("arguments")));
    }
    if (told.reason == "stop" && !told.calls.empty()) told.reason = "calls";
    return told;
  }

  Json next_request(const Json& answer) const override {
    Json body = base();
    Json& messages = body["messages"];
    messages.push_back(answer.at("message"));
    for (const Json& call : answer.at("message").value("tool_calls", Json::array())) {
      messages.push_back(
          {{"role", "tool"}, {"tool_name", call.at("function").at("name")}, {"content", kResult}});
    }
    messages.push_back(message_of("user", kNextQuestion));
    return body;
  }

 private:
  static Json base() {
    return {{"tools", nested_tools()},
            {"stream", false},
            {"messages", {message_of("user", kQuestion)}}};
  }
};

}  // namespace

std::unique_ptr<ApiUnderTest> chat_completions_under_test() {
  return std::make_unique<ChatCompletions>();
}
std::unique_ptr<ApiUnderTest> ollama_under_test() {
  return std::make_unique<Ollama>();
}

void PrintTo(const ToldAnswer& answer, std::ostream* out) {
  *out << json_text(nlohmann::json({{"content", answer.content},
                                    {"thought", answer.thought},
                                    {"calls", answer.calls},
                                    {"reason", answer.reason}}));
}

ToldAnswer without_spaces(ToldAnswer answer) {
  for (auto& [name, arguments] : answer.calls) {
    if (is_json_object(arguments)) arguments = json_text(parse_ordered_json(arguments));
  }
  return answer;
}

std::vector<OrderedJson> events_in(std::string_view body) {
  std::vector<OrderedJson> events;
  while (!body.empty()) {
    std::string_view line = body.substr(0, body.find('\n'));
    body.remove_prefix(std::min(body.size(), line.size() + 1));
    if (line.starts_with("data: ")) line.remove_prefix(6);
    if (line.starts_with('{')) events.push_back(parse_ordered_json(line));
  }
  return events;
}

}  // namespace pagoda
