// OpenAI's older fields in /v1/chat/completions: functions, function_call, the role function.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kChatPath = "/v1/chat/completions";

const json kFunctions = parse_json(R"([{"name": "now"}, {"name": "get_weather",
    "description": "Weather.", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}])");

class ChatFunctionsTest : public ::testing::Test {
 protected:
  static json ask(const std::string& content, json more) {
    more["messages"] = {{{"role", "user"}, {"content", content}}};
    return more;
  }
  json choice_of(const json& body) {
    return client_.answer(kChatPath, json_text(body)).at("choices").at(0);
  }

  ApiClient client_;
};

TEST_F(ChatFunctionsTest, TheyAreTools) {
  const std::string one = R"({"name": "now", "parameters": {"type": "object"}})";
  const std::string other = R"({"name": "later"})";
  const auto prompt_with = [&](const std::string& fields) {
    const std::string chat = R"({"messages": [{"role": "user", "content": "say a"}], )";
    client_.answer(kChatPath, chat + fields + "}");
    return client_.last_prompt();
  };
  const auto functions = [&](const std::string& function_call) {
    return prompt_with(
        fmt::format(R"("functions": [{}, {}], "function_call": {})", one, other, function_call));
  };
  const auto tools = [&](const std::string& tool_choice) {
    const auto tool = [](const std::string& function) {
      return R"({"type": "function", "function": )" + function + "}";
    };
    return prompt_with(fmt::format(R"("tools": [{}, {}], "tool_choice": {})", tool(one),
                                   tool(other), tool_choice));
  };
  EXPECT_THAT(tools(R"("auto")"), HasSubstr("later"));
  EXPECT_EQ(functions("null"), tools("null"));
  EXPECT_EQ(functions(R"("none")"), tools(R"("none")"));
  EXPECT_EQ(functions(R"({"name": "now"})"),
            tools(R"({"type": "function", "function": {"name": "now"}})"));
}

TEST_F(ChatFunctionsTest, ANamedOneMustBeCalled) {
  client_.answer(
      kChatPath,
      json_text(ask("say a", {{"functions", kFunctions}, {"function_call", {{"name", "now"}}}})));
  EXPECT_TRUE(client_.may_begin("<tool_call>\n{\"name\": \"now\""));
  EXPECT_FALSE(client_.may_begin("<tool_call>\n{\"name\": \"get_weather\""));
}

TEST_F(ChatFunctionsTest, TheAnswerHasAFunctionCall) {
  const std::string calls =
      R"(say <tool_call>{"name": "get_weather", "arguments": {"city": "Kyoto"}}</tool_call>)"
      R"(<tool_call>{"name": "now", "arguments": {}}</tool_call>)";
  const json body = ask(calls, {{"functions", kFunctions}});
  const json choice = choice_of(body);
  EXPECT_EQ(choice.at("finish_reason"), "function_call");
  const json& message = choice.at("message");
  EXPECT_EQ(message.at("function_call"),
            json({{"name", "get_weather"}, {"arguments", R"({"city": "Kyoto"})"}}));
  EXPECT_FALSE(message.contains("tool_calls"));
  EXPECT_TRUE(message.at("content").is_null());

  json streaming = body;
  streaming["stream"] = true;
  json streamed = {{"name", ""}, {"arguments", ""}};
  std::string end;
  for (const json& event : client_.events(kChatPath, json_text(streaming))) {
    const json& streamed_choice = event.at("choices").at(0);
    EXPECT_FALSE(streamed_choice.at("delta").contains("tool_calls"));
    const json call = streamed_choice.at("delta").value("function_call", json::object());
    for (const auto& [name, text] : call.items())
      streamed[name] = streamed[name].get<std::string>() + text.get<std::string>();
    if (!streamed_choice.at("finish_reason").is_null())
      end = streamed_choice.at("finish_reason").get<std::string>();
  }
  EXPECT_EQ(streamed, message.at("function_call"));
  EXPECT_EQ(end, "function_call");
}

TEST_F(ChatFunctionsTest, WhatWasAnsweredIsTakenBack) {
  const json call = {{"name", "now"}, {"arguments", "{}"}};
  json body = {{"messages",
                {{{"role", "user"}, {"content", "What time is it?"}},
                 {{"role", "assistant"}, {"content", nullptr}, {"function_call", call}},
                 {{"role", "function"}, {"name", "now"}, {"content", "12:00"}},
                 {{"role", "user"}, {"content", "say a"}}}}};
  client_.answer(kChatPath, json_text(body));
  const std::string prompt = client_.last_prompt();
  EXPECT_THAT(prompt, HasSubstr(R"("id": "call00001")"));
  EXPECT_THAT(prompt, HasSubstr("<|im_start|>tool\n12:00<|im_end|>"));
  EXPECT_THAT(prompt, Not(HasSubstr("function_call")));
  body["messages"][2].erase("name");
  EXPECT_EQ(client_.refusal(kChatPath, json_text(body)).at("message"),
            "'messages[2].name': expected the function's name");
  body["messages"][1]["function_call"] = 5;
  EXPECT_THAT(client_.refusal(kChatPath, json_text(body)).at("message"),
              HasSubstr("'messages[1].function_call': expected an object"));
}

TEST_F(ChatFunctionsTest, ErrorsNameTheField) {
  const std::pair<json, std::string> cases[] = {
      {{{"functions", 5}}, "'functions': expected a list of functions, got a number"},
      {{{"functions", {{{"name", ""}}}}},
       "'functions[0].name': expected 1 to 256 characters of ^[A-Za-z0-9_.:/-]+$"},
      {{{"functions", {5}}}, "'functions[0]': expected an object, got a number"},
      {{{"functions", kFunctions},
        {"tools", {{{"type", "function"}, {"function", {{"name", "f"}}}}}}},
       "'functions' and 'tools' must not both be there"},
      {{{"functions", kFunctions}, {"function_call", {{"name", "g"}}}},
       "'function_call': 'functions' has no function 'g'"},
      {{{"functions", kFunctions}, {"function_call", "required"}},
       R"('function_call': expected none, auto, or a function as {"name": ...})"},
      {{{"function_call", {{"name", "g"}}}}, "'function_call' needs 'functions'"},
  };
  for (const auto& [more, message] : cases)
    EXPECT_EQ(client_.refusal(kChatPath, json_text(ask("a", more))).at("message"), message);
}

}  // namespace
}  // namespace pagoda
