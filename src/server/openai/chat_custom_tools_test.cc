// Custom tools in /v1/chat/completions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/openai/chat_tools_rig.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class ChatCustomToolsTest : public ChatToolsTest {
 protected:
  static json custom_tool(json format = nullptr) {
    json custom = {{"name", "patch"}, {"description", "Changes files."}};
    if (!format.is_null()) custom["format"] = std::move(format);
    return {{"type", "custom"}, {"custom", custom}};
  }
  static json with_custom(const std::string& content, json more = json::object()) {
    more["tools"] = {custom_tool(), kTools.at(1)};
    return ask(content, std::move(more));
  }
  static json grammar(const char* syntax, const char* definition) {
    return {{"type", "grammar"}, {"grammar", {{"syntax", syntax}, {"definition", definition}}}};
  }
  static std::string input_of_call(const std::string& begin) {
    return call_of("patch") + R"("input": ")" + begin;
  }
};

const char* const kCalls =
    R"(say <tool_call>{"name": "patch", "arguments": {"input": "a\n\"b\""}}</tool_call>)"
    R"(<tool_call>{"name": "now", "arguments": {}}</tool_call>)";

TEST_F(ChatCustomToolsTest, TheirCallsHaveAnInput) {
  const json choice = choice_of(with_custom(kCalls));
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  json calls = choice.at("message").at("tool_calls");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_TRUE(calls[0].at("id").get<std::string>().starts_with("call_"));
  calls[0].erase("id");
  EXPECT_EQ(calls[0],
            json({{"type", "custom"}, {"custom", {{"name", "patch"}, {"input", "a\n\"b\""}}}}));
  EXPECT_EQ(calls[1].at("function"), json({{"name", "now"}, {"arguments", "{}"}}));
}

TEST_F(ChatCustomToolsTest, StreamsTellTheInputAsItComes) {
  json body = with_custom(kCalls, {{"stream", true}});
  std::string input;
  json first, other;
  for (const json& event : client_.events(kChatPath, json_text(body))) {
    const json& delta = event.at("choices").at(0).at("delta");
    for (const json& call : delta.value("tool_calls", json::array())) {
      if (call.at("index") == 1) {
        if (other.is_null()) other = call;
        continue;
      }
      if (first.is_null()) first = call;
      input += call.at("custom").at("input").get<std::string>();
      EXPECT_FALSE(call.contains("function"));
    }
  }
  EXPECT_EQ(input, "a\n\"b\"");
  EXPECT_EQ(first.at("type"), "custom");
  EXPECT_EQ(first.at("custom"), json({{"name", "patch"}, {"input", ""}}));
  EXPECT_EQ(other.at("type"), "function");
}

TEST_F(ChatCustomToolsTest, TheModelSeesAFunctionWithAText) {
  const std::string prompt = prompt_of(with_custom("say a"));
  EXPECT_THAT(prompt, HasSubstr("patch"));
  EXPECT_THAT(prompt, HasSubstr("Changes files."));
  EXPECT_THAT(prompt, HasSubstr("The tool's input, a plain text."));
  EXPECT_THAT(prompt, HasSubstr(R"("required":["input"])"));
  const json regex = {{"tools", {custom_tool(grammar("regex", "a+"))}}};
  EXPECT_THAT(prompt_of(ask("say a", regex)), HasSubstr("this regular expression: a+"));
  const json lark = {{"tools", {custom_tool(grammar("lark", "start: /a/"))}}};
  EXPECT_THAT(prompt_of(ask("say a", lark)), HasSubstr("this Lark grammar:\\nstart: /a/"));
}

TEST_F(ChatCustomToolsTest, ArgumentsAreHeldToAText) {
  for (const json& choice : {json("auto"), json("required"),
                             json{{"type", "custom"}, {"custom", {{"name", "patch"}}}}}) {
    const json body = with_custom("say a", {{"tool_choice", choice}});
    EXPECT_TRUE(may_begin(body, input_of_call("any"))) << choice;
    EXPECT_FALSE(may_begin(body, call_of("patch") + R"("input": 1)")) << choice;
    EXPECT_FALSE(may_begin(body, call_of("patch") + R"("text")")) << choice;
  }
  const json named = {{"type", "custom"}, {"custom", {{"name", "patch"}}}};
  EXPECT_FALSE(may_begin(with_custom("say a", {{"tool_choice", named}}), call_of("now")));
}

TEST_F(ChatCustomToolsTest, ARegexHoldsTheInput) {
  for (const char* choice : {"auto", "required"}) {
    const json body = ask(
        "say a", {{"tools", {custom_tool(grammar("regex", "a{2}|b"))}}, {"tool_choice", choice}});
    EXPECT_TRUE(may_begin(body, input_of_call("aa\"}")));
    EXPECT_TRUE(may_begin(body, input_of_call("b\"}")));
    EXPECT_FALSE(may_begin(body, input_of_call("ab")));
    EXPECT_FALSE(may_begin(body, input_of_call("a\"")));
  }
}

TEST_F(ChatCustomToolsTest, CallsAreTakenBack) {
  const json call = {
      {"id", "call_1"}, {"type", "custom"}, {"custom", {{"name", "patch"}, {"input", "a\"b"}}}};
  json body = {{"messages",
                {{{"role", "user"}, {"content", "Change it."}},
                 {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {call}}},
                 {{"role", "tool"}, {"tool_call_id", "call_1"}, {"content", "done"}},
                 {{"role", "user"}, {"content", "say a"}}}}};
  EXPECT_THAT(
      prompt_of(body),
      HasSubstr(
          R"("type": "function", "function": {"name": "patch", "arguments": {"input": "a\"b"}})"));
  body["messages"][1]["tool_calls"][0]["custom"].erase("input");
  EXPECT_EQ(refusal_of(body).at("message"),
            "'messages[1].tool_calls[].custom': expected an object with a 'name' and an 'input'");
}

TEST_F(ChatCustomToolsTest, ErrorsNameTheField) {
  const std::pair<json, std::string> cases[] = {
      {{{"type", "custom"}}, "'tools[0].custom': expected an object"},
      {{{"type", "custom"}, {"custom", {{"name", "a b"}}}},
       "'tools[0].custom.name': expected 1 to 256 characters of ^[A-Za-z0-9_.:/-]+$"},
      {custom_tool("text"), "'tools[0].custom.format': expected an object with a 'type'"},
      {custom_tool({{"type", "json"}}),
       R"('tools[0].custom.format.type': expected text or grammar, got "json")"},
      {custom_tool(grammar("ebnf", "a")),
       R"('tools[0].custom.format.grammar.syntax': expected lark or regex, got "ebnf")"},
      {custom_tool({{"type", "grammar"}, {"syntax", "regex"}}),
       "'tools[0].custom.format.definition': expected a grammar of 1 to 1048576 bytes, as a "
       "string"},
      {custom_tool(grammar("lark", "")),
       "'tools[0].custom.format.grammar.definition': expected a grammar of 1 to 1048576 bytes, as "
       "a string"},
  };
  for (const auto& [tool, message] : cases) {
    const json refused = refusal_of(ask("a", {{"tools", {tool}}}));
    EXPECT_EQ(refused.at("message"), message);
    EXPECT_EQ(refused.at("param"), "tools");
  }
  const json refused = refusal_of(ask("a", {{"tools", {custom_tool(grammar("regex", "a["))}}}));
  EXPECT_EQ(refused.at("param"), "tools");
  EXPECT_THAT(refused.at("message").get<std::string>(),
              HasSubstr("unclosed character class, at '['"));
}

}  // namespace
}  // namespace pagoda
