// Tools in /v1/chat/completions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "server/fields/tool_fields.h"
#include "server/openai/chat_tools_rig.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST_F(ChatToolsTest, CallsAreToldApart) {
  const json choice = choice_of(with_tools(
      R"(say Look: <tool_call>{"name": "get_weather", "arguments": {"city": "Zürich"}}</tool_call> <tool_call>{"name": "now"}</tool_call>)"));
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  const json& message = choice.at("message");
  EXPECT_EQ(message.at("content"), "Look:");
  const json& calls = message.at("tool_calls");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_TRUE(calls[0].at("id").get<std::string>().starts_with("call_"));
  EXPECT_NE(calls[0].at("id"), calls[1].at("id"));
  EXPECT_EQ(calls[0].at("type"), "function");
  EXPECT_EQ(calls[0].at("function"),
            json({{"name", "get_weather"}, {"arguments", R"({"city": "Zürich"})"}}));
  EXPECT_EQ(calls[1].at("function"), json({{"name", "now"}, {"arguments", "{}"}}));
}

TEST_F(ChatToolsTest, CallsAloneHaveNoContent) {
  const json choice = choice_of(with_tools(R"(say <tool_call>{"name": "now"}</tool_call>)"));
  EXPECT_TRUE(choice.at("message").at("content").is_null());
}

TEST_F(ChatToolsTest, TextBehindACallBeginsALine) {
  const json body = with_tools(
      R"(say One <tool_call>{"name": "now"}</tool_call> two <tool_call>{"name": "now"}</tool_call>three)");
  for (const json& choice : {choice_of(body), streamed(body)}) {
    EXPECT_EQ(choice.at("message").at("content"), "One two\nthree");
    EXPECT_EQ(choice.at("message").at("tool_calls").size(), 2u);
  }
  EXPECT_EQ(choice_of(with_tools(R"(say <tool_call>{"name": "now"}</tool_call>two)"))
                .at("message")
                .at("content"),
            "two");
}

TEST_F(ChatToolsTest, StreamsTellTheSame) {
  for (
      const char* text :
      {R"(say Look: <tool_call>{"name": "get_weather", "arguments": {"city": "Zürich"}}</tool_call> <tool_call>{"name": "now"}</tool_call>)",
       "say no call", R"(say <tool_call>{"name": "now", "argum)",
       R"(say <tool_call>{"name": "now", "arguments": {"a": "b)",
       R"(say <tool_call>{"name": "now", "arguments": {"a": NaN}}</tool_call> end)"}) {
    const json whole = choice_of(with_tools(text));
    const json stream = streamed(with_tools(text));
    EXPECT_EQ(stream.at("finish_reason"), whole.at("finish_reason"));
    const json& message = whole.at("message");
    EXPECT_EQ(stream.at("message").at("content"),
              message.at("content").is_null() ? json("") : message.at("content"));
    ASSERT_EQ(stream.at("message").contains("tool_calls"), message.contains("tool_calls"));
    if (!message.contains("tool_calls")) continue;
    for (std::size_t i = 0; i < message.at("tool_calls").size(); ++i) {
      EXPECT_EQ(stream.at("message").at("tool_calls").at(i).at("function"),
                message.at("tool_calls").at(i).at("function"));
    }
  }
}

// A client runs the calls of an answer that ends with "tool_calls".
TEST_F(ChatToolsTest, AnAnswerWithABrokenCallDoesNotEndWithCalls) {
  const std::string begin = R"(<tool_call>{"name": "now", "arguments": )";
  const std::tuple<std::string, std::string, const char*> cases[] = {
      {R"({"a": "b)", R"({"a": "b)", "stop"},
      {R"({"a": 1,}}</tool_call>)", R"({"a": 1,})", "stop"},
      {R"({"a": NaN}}</tool_call> <tool_call>{"name": "now"}</tool_call>)", R"({"a": NaN})",
       "stop"},
      {R"({"a": "bbbbbbbbbbbb"}})", R"({"a": "bbb)", "length"}};
  for (const auto& [text, arguments, reason] : cases) {
    json body = with_tools("say " + begin + text);
    if (reason == std::string("length")) body["max_tokens"] = begin.size() + 10;
    for (const json& choice : {choice_of(body), streamed(body)}) {
      EXPECT_EQ(choice.at("finish_reason"), reason) << text;
      EXPECT_EQ(choice.at("message").at("tool_calls").at(0).at("function"),
                json({{"name", "now"}, {"arguments", arguments}}));
    }
  }
}

TEST_F(ChatToolsTest, ACallThatMustBeMadeAndIsCutOffLeavesNoContent) {
  const std::string begin = R"(<tool_call>{"name": "now", "arguments": )";
  for (std::size_t num_tokens = 1; num_tokens <= begin.size(); ++num_tokens) {
    const json body = with_tools("say " + begin + "{}}",
                                 {{"tool_choice", "required"}, {"max_tokens", num_tokens}});
    EXPECT_EQ(choice_of(body).at("message").at("content"), "") << num_tokens;
  }
}

TEST_F(ChatToolsTest, ToolsReachTheModel) {
  const std::string prompt = prompt_of_text(ask_with_tools_text());
  EXPECT_THAT(prompt, HasSubstr("<|im_start|>system\nYou can call functions"));
  EXPECT_THAT(prompt, HasSubstr(R"("name":"get_weather","description":"Weather.")"));
  for (const json& none : {json{{"tool_choice", "none"}}, json{{"tools", json::array()}}}) {
    json body = with_tools("say a");
    body.update(none);
    EXPECT_EQ(prompt_of(body), prompt_of(ask("say a")));
  }
}

// A template with a place for tools gets them there, and the messages are not changed.
TEST_F(ChatToolsTest, ATemplateGetsTheTools) {
  const std::string text =
      "{% if tools %}{{ tools | tojson }}{% endif %}{% for message in messages %}{{ "
      "'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endfor "
      "%}{{ '<|im_start|>assistant\\n' }}";
  set_chat_template(client_.model(), text);
  client_.model().answer_format = answer_format_of(text);
  EXPECT_EQ(prompt_of_text(ask_with_tools_text()),
            std::string(kToolsText) + "<|im_start|>user\nsay a<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(ChatToolsTest, WithoutToolsMarksAreText) {
  const std::string text = R"(<tool_call>{"name": "now"}</tool_call>)";
  EXPECT_EQ(choice_of(ask("say " + text)).at("message").at("content"), text);
  EXPECT_EQ(
      choice_of(with_tools("say " + text, {{"tool_choice", "none"}})).at("message").at("content"),
      text);
}

TEST_F(ChatToolsTest, OneCallWhereParallelOnesAreNotWanted) {
  const json choice = choice_of(with_tools(
      R"(say <tool_call>{"name": "now"}</tool_call><tool_call>{"name": "now"}</tool_call>)",
      {{"parallel_tool_calls", false}}));
  EXPECT_EQ(choice.at("message").at("tool_calls").size(), 1u);
}

TEST_F(ChatToolsTest, CallsThatMustBeMadeAreHeldByAGrammar) {
  const json named = {{"type", "function"}, {"function", {{"name", "now"}}}};
  for (const json& choice : {json("required"), named}) {
    client_.answer(kChatPath, with_tools("say a", {{"tool_choice", choice}}).dump());
    EXPECT_NE(client_.engine().last_request().mask_source, nullptr);
  }
  client_.answer(kChatPath, with_tools("say a").dump());
  EXPECT_EQ(client_.engine().last_request().mask_source, nullptr);
}

TEST_F(ChatToolsTest, ACallThatIsRepeatedIsTheLastOfThoseThatMustBeMade) {
  client_.answer(kChatPath, json_text(with_tools("say a", {{"tool_choice", "required"}})));
  const auto source = client_.engine().last_request().mask_source->clone();
  const std::string call = call_of("now") + "}}\n</tool_call>";
  for (const int id : client_.model().tokenizer->encode(call + "\n" + call).value())
    ASSERT_TRUE(source->accept(id).ok());
  std::vector<std::uint32_t> bits(client_.engine().limits().vocab_size / 32 + 1);
  ASSERT_TRUE(source->fill_mask(bits).ok());
  int num_allowed = 0;
  for (const std::uint32_t word : bits) num_allowed += std::popcount(word);
  EXPECT_EQ(num_allowed, 1);
}

TEST_F(ChatToolsTest, CallsThatMustBeMadeLeaveNoTextForAFormat) {
  const std::string call = call_of("now");
  json body = with_tools(
      "say a", {{"response_format", {{"type", "json_object"}}}, {"tool_choice", "required"}});
  EXPECT_FALSE(may_begin(body, "{"));
  EXPECT_TRUE(may_begin(body, call));
}

TEST_F(ChatToolsTest, AFormatBesideFreeToolsLeavesTheChoice) {
  const char* format_name = "response_format";
  const json formats[] = {
      {{"type", "json_object"}},
      {{"type", "json_schema"}, {"json_schema", {{"schema", {{"type", "object"}}}}}}};
  for (const json& format : formats) {
    json body = with_tools("say a", {{format_name, format}});
    EXPECT_TRUE(may_begin(body, "{\"a\": 1}"));
    EXPECT_TRUE(may_begin(body, call_of("now") + "}}\n</tool_call>"));
    EXPECT_FALSE(may_begin(body, "text"));
    EXPECT_FALSE(may_begin(body, "<think>"));
    body["tool_choice"] = "none";
    EXPECT_TRUE(may_begin(body, "{\"a\": 1}"));
    EXPECT_FALSE(may_begin(body, call_of("now")));
  }
  // The same holds for vLLM's and Ollama's fields, and for schemas of several lines.
  EXPECT_TRUE(may_begin(with_tools("say a", {{"guided_json", "{\n\"type\":\r\n\"object\"}"}}),
                        call_of("now")));
  const json refused = refusal_of(with_tools(
      "a",
      {{format_name, {{"type", "json_schema"}, {"json_schema", {{"schema", {{"no-such", 1}}}}}}}}));
  EXPECT_EQ(refused.at("param"), format_name);
  EXPECT_THAT(refused.at("message").get<std::string>(), HasSubstr("no-such"));
  // A grammar of another kind constrains the whole answer, so calls are not possible.
  const json whole = with_tools("say a", {{"regex", "yes|no"}});
  EXPECT_TRUE(may_begin(whole, "yes"));
  EXPECT_FALSE(may_begin(whole, call_of("now")));
}

TEST_F(ChatToolsTest, AThoughtMayStandBeforeAFormat) {
  client_.model().answer_format.thought = ThoughtMarks{"<think>", "</think>"};
  json body = ask("say <think>So.</think>{}", {{"response_format", {{"type", "json_object"}}}});
  EXPECT_TRUE(may_begin(body, "<think>So.</think>\n\n{"));
  EXPECT_TRUE(may_begin(body, "{"));
  EXPECT_FALSE(may_begin(body, "So"));
  EXPECT_FALSE(may_begin(body, "<think>So.</think>\n\nSo"));
  const json message = choice_of(body).at("message");
  EXPECT_EQ(message.at("reasoning_content"), "So.");
  EXPECT_EQ(message.at("content"), "{}");
  body["reasoning_format"] = "none";  // thoughts would be in the content, which must be JSON
  EXPECT_FALSE(may_begin(body, "<think>"));
}

TEST_F(ChatToolsTest, AThoughtHasItsBudget) {
  client_.model().answer_format.thought = ThoughtMarks{"<think>", "</think>"};
  for (const char* name : {"thinking_token_budget", "reasoning_budget_tokens"}) {
    const json body = ask("say a", {{name, 2}});
    EXPECT_TRUE(may_begin(body, "<think>ab</think>ab"));
    EXPECT_FALSE(may_begin(body, "<think>abc"));
    EXPECT_TRUE(may_begin(body, "abcdef"));
  }
  EXPECT_TRUE(may_begin(ask("say a", {{"thinking_token_budget", -1}}), "<think>abc"));
  EXPECT_EQ(refusal_of(ask("a", {{"thinking_token_budget", -2}})).at("param"),
            "thinking_token_budget");
}

TEST_F(ChatToolsTest, AllowedToolsAloneAreCalled) {
  for (const char* mode : {"required", "auto"}) {
    const json one = json::array({{{"type", "function"}, {"function", {{"name", "now"}}}}});
    const json body = with_tools(
        "say a",
        {{"tool_choice",
          {{"type", "allowed_tools"}, {"allowed_tools", {{"mode", mode}, {"tools", one}}}}}});
    EXPECT_TRUE(may_begin(body, call_of("now"))) << mode;
    EXPECT_FALSE(may_begin(body, call_of("get_weather"))) << mode;
    EXPECT_EQ(may_begin(body, "text"), mode == std::string("auto")) << mode;
    EXPECT_EQ(prompt_of(body), prompt_of(with_tools("say a"))) << mode;
  }
  const json none = {{"type", "allowed_tools"},
                     {"allowed_tools", {{"mode", "auto"}, {"tools", json::array()}}}};
  EXPECT_EQ(prompt_of(with_tools("say a", {{"tool_choice", none}})), prompt_of(ask("say a")));
}

TEST_F(ChatToolsTest, WhatIsWrongInAllowedToolsIsNamed) {
  const std::pair<const char*, std::string> cases[] = {
      {"1", "'tool_choice.allowed_tools': expected an object with 'mode' and 'tools'"},
      {R"({"tools": []})", "'tool_choice.allowed_tools.mode': expected auto or required"},
      {R"({"mode": "auto"})",
       "'tool_choice.allowed_tools.tools': expected a list of at most 1024 functions"},
      {R"({"mode": "required", "tools": []})",
       "'tool_choice.allowed_tools.tools': expected at least one function"},
      {R"({"mode": "auto", "tools": [{"type": "function", "name": "now"}]})",
       "'tool_choice.allowed_tools.tools[0]': expected a function as "
       R"({"type": "function", "function": {"name": ...}})"},
      {R"({"mode": "auto", "tools": [{"type": "function", "function": {"name": "g"}}]})",
       "'tool_choice': 'tools' has no function 'g'"},
  };
  for (const auto& [allowed, message] : cases) {
    const json choice = {{"type", "allowed_tools"}, {"allowed_tools", parse_json(allowed)}};
    const json refusal = refusal_of(with_tools("a", {{"tool_choice", choice}}));
    EXPECT_EQ(refusal.at("message"), message);
    EXPECT_EQ(refusal.at("param"), "tool_choice");
  }
}

TEST_F(ChatToolsTest, StrictToolsAreHeldToTheirSchemasWhereTheModelMayChoose) {
  json body = with_tools("say a");
  body["tools"][0]["function"]["strict"] = true;
  client_.answer(kChatPath, json_text(body));
  EXPECT_NE(client_.engine().last_request().mask_source, nullptr);
  body["tool_choice"] = "none";
  client_.answer(kChatPath, json_text(body));
  EXPECT_EQ(client_.engine().last_request().mask_source, nullptr);
}

TEST_F(ChatToolsTest, ErrorsNameTheField) {
  const auto tools = [](const char* text) { return json{{"tools", parse_json(text)}}; };
  const std::pair<json, std::string> cases[] = {
      {ask("a", {{"tool_choice", "required"}}), "'tool_choice' needs 'tools'"},
      {with_tools("a", {{"tool_choice", "any"}}),
       "'tool_choice': expected none, auto, required, allowed_tools, or a function as "
       R"({"type": "function", "function": {"name": ...}})"},
      {with_tools("a", {{"tool_choice", {{"type", "function"}, {"function", {{"name", "g"}}}}}}),
       "'tool_choice': 'tools' has no function 'g'"},
      {ask("a", tools("{}")), "'tools': expected a list of tools, got an object"},
      {ask("a", tools("[1]")), "'tools[0]': expected an object, got a number"},
      {ask("a", tools(R"([{"type": "mcp"}])")),
       "'tools[0].type': expected function or custom, got \"mcp\""},
      {ask("a", tools(R"([{"type": "function", "function": {"name": "a b"}}])")),
       "'tools[0].function.name': expected 1 to 256 characters of ^[A-Za-z0-9_.:/-]+$"},
      {ask("a", tools(R"([{"type": "function", "function": {"name": "f", "parameters": []}}])")),
       "'tools[0].function.parameters': expected an object, a JSON Schema"},
      {with_tools("a", {{"tool_choice", "required"}, {"regex", "a"}}),
       "'tool_choice' asks for calls alone, and 'regex' for another answer"},
  };
  for (const auto& [body, message] : cases) EXPECT_EQ(refusal_of(body).at("message"), message);
}

TEST_F(ChatToolsTest, ToolsAreBounded) {
  json tools = json::array();
  for (std::size_t i = 0; i < kMaxTools; ++i)
    tools.push_back({{"type", "function"}, {"function", {{"name", "f"}}}});
  // So many tools are accepted, but they do not fit this short context.
  EXPECT_EQ(refusal_of(ask("a", {{"tools", tools}})).at("code"), "context_length_exceeded");
  tools.push_back(tools[0]);
  EXPECT_EQ(refusal_of(ask("a", {{"tools", tools}})).at("message"),
            "'tools': expected at most 1024 tools, got 1025");
}

TEST_F(ChatToolsTest, ASchemaThatCannotBeHeldToIsRefusedWhereItMustBe) {
  json body = ask("say a", {{"tools", parse_json(R"([{"type": "function", "function": {"name": "f",
      "parameters": {"type": "object", "properties": {"a": {"no-such-keyword": 1}}}}}])")}});
  client_.answer(kChatPath, json_text(body));
  body["tool_choice"] = "required";
  const json refusal = refusal_of(body);
  EXPECT_EQ(refusal.at("param"), "tools");
}

}  // namespace
}  // namespace pagoda
