// Tools and thoughts in /v1/chat/completions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "server/fields/tool_fields.h"
#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kChatPath = "/v1/chat/completions";

constexpr std::string_view kToolsText =
    R"([{"type": "function", "function": {"name": "get_weather", "description": "Weather.", )"
    R"("parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}, )"
    R"({"type": "function", "function": {"name": "now", "strict": null}}])";
const json kTools = parse_json(kToolsText);

class ChatToolsTest : public ::testing::Test {
 protected:
  static json ask(const std::string& content, json more = json::object()) {
    more["messages"] = {{{"role", "user"}, {"content", content}}};
    return more;
  }
  static json with_tools(const std::string& content, json more = json::object()) {
    more["tools"] = kTools;
    return ask(content, std::move(more));
  }
  json choice_of(const json& body) {
    return client_.answer(kChatPath, json_text(body)).at("choices").at(0);
  }
  json refusal_of(const json& body) { return client_.refusal(kChatPath, json_text(body)); }
  std::string prompt_of(const json& body) { return prompt_of_text(json_text(body)); }
  std::string prompt_of_text(const std::string& body) {
    client_.answer(kChatPath, body);
    return client_.last_prompt();
  }

  static std::string call_of(const std::string& name) {
    return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": {";
  }
  // Returns whether the grammar of a request's answers accepts such a beginning.
  bool may_begin(const json& body, const std::string& text) {
    client_.answer(kChatPath, json_text(body));
    return client_.may_begin(text);
  }

  // Joins the deltas of a stream, as OpenAI's clients do.
  json streamed(json body) {
    body["stream"] = true;
    json message = {{"content", ""}};
    json end;
    for (const json& event : client_.events(kChatPath, json_text(body))) {
      const json& choice = event.at("choices").at(0);
      const json& delta = choice.at("delta");
      for (const char* name : {"content", "reasoning_content"}) {
        if (delta.contains(name))
          message[name] = message.value(name, "") + delta.at(name).get<std::string>();
      }
      for (const json& call : delta.value("tool_calls", json::array())) {
        json& all = message["tool_calls"];
        const auto index = call.at("index").get<std::size_t>();
        if (index == all.size()) {
          all.push_back(call);
          continue;
        }
        json& arguments = all.at(index).at("function").at("arguments");
        arguments =
            arguments.get<std::string>() + call.at("function").at("arguments").get<std::string>();
      }
      if (!choice.at("finish_reason").is_null()) end = choice.at("finish_reason");
    }
    return {{"message", message}, {"finish_reason", end}};
  }

  // Returns a request with tools, whose keys are in the client's order.
  static std::string ask_with_tools_text() {
    return R"({"messages": [{"role": "user", "content": "say a"}], "tools": )" +
           std::string(kToolsText) + "}";
  }

  ApiClient client_;
};

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

TEST_F(ChatToolsTest, StreamsTellTheSame) {
  for (
      const char* text :
      {R"(say Look: <tool_call>{"name": "get_weather", "arguments": {"city": "Zürich"}}</tool_call> <tool_call>{"name": "now"}</tool_call>)",
       "say no call", R"(say <tool_call>{"name": "now", "argum)"}) {
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
  client_.model().chat_template =
      std::make_shared<const ChatTemplate>(ChatTemplate::from_text("tools", text).value());
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
      {ask("a", tools(R"([{"type": "custom"}])")),
       "'tools[0].type': expected function, got \"custom\""},
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

class ChatThoughtsTest : public ChatToolsTest {
 protected:
  ChatThoughtsTest() {
    client_.model().answer_format.thought = ThoughtMarks{"<think>", "</think>"};
  }
};

TEST_F(ChatThoughtsTest, ThoughtsComeApart) {
  const json body = ask("say <think>So. </think> Yes.");
  const json message = choice_of(body).at("message");
  EXPECT_EQ(message.at("content"), "Yes.");
  EXPECT_EQ(message.at("reasoning_content"), "So.");
  const json stream = streamed(body).at("message");
  EXPECT_EQ(stream.at("content"), "Yes.");
  EXPECT_EQ(stream.at("reasoning_content"), "So.");
  EXPECT_FALSE(choice_of(ask("say Yes.")).at("message").contains("reasoning_content"));
}

TEST_F(ChatThoughtsTest, AnAnswerMayEndInAThought) {
  const json choice = choice_of(ask("say <think>So, let me see", {{"max_tokens", 12}}));
  EXPECT_EQ(choice.at("finish_reason"), "length");
  EXPECT_EQ(choice.at("message").at("content"), "");
  EXPECT_EQ(choice.at("message").at("reasoning_content"),
            streamed(ask("say <think>So, let me see", {{"max_tokens", 12}}))
                .at("message")
                .at("reasoning_content"));
}

TEST_F(ChatThoughtsTest, ClientsChooseWhereThoughtsStand) {
  const std::string text = "say <think>So.</think> Yes.";
  for (const json& raw :
       {json{{"separate_reasoning", false}}, json{{"reasoning_format", "none"}}}) {
    const json message = choice_of(ask(text, raw)).at("message");
    EXPECT_EQ(message.at("content"), "<think>So.</think> Yes.");
    EXPECT_FALSE(message.contains("reasoning_content"));
  }
  const json message = choice_of(ask(text, {{"include_reasoning", false}})).at("message");
  EXPECT_EQ(message.at("content"), "Yes.");
  EXPECT_FALSE(message.contains("reasoning_content"));
}

TEST_F(ChatThoughtsTest, TheTemplateIsToldHowToThink) {
  const std::string text =
      "{% for message in messages %}{{ message['content'] }}{% endfor %}{{ enable_thinking }} "
      "{{ reasoning_effort }}";
  client_.model().chat_template =
      std::make_shared<const ChatTemplate>(ChatTemplate::from_text("thinks", text).value());
  EXPECT_EQ(prompt_of(ask("a", {{"enable_thinking", true}})), "aTrue ");
  EXPECT_EQ(prompt_of(ask("a", {{"think", false}})), "aFalse ");
  EXPECT_EQ(prompt_of(ask("a", {{"think", "low"}})), "a low");
  EXPECT_EQ(prompt_of(ask("a", {{"reasoning_effort", "none"}})), "aFalse none");
  EXPECT_EQ(prompt_of(ask("a", {{"reasoning_effort", "none"},
                                {"chat_template_kwargs", {{"enable_thinking", 1}}}})),
            "a1 none");
  EXPECT_EQ(refusal_of(ask("a", {{"reasoning_effort", "much"}})).at("param"), "reasoning_effort");
}

}  // namespace
}  // namespace pagoda
