#include "answer/answer_parser.h"

#include <gtest/gtest.h>

#include <random>

#include "answer/answer_reading_rig.h"

namespace pagoda {
namespace {

struct Case {
  ToolSyntax syntax;
  std::string_view text;
  Answer expected;
};

TEST(AnswerParser, CallsOfEachSyntax) {
  const Case cases[] = {
      {ToolSyntax::kHermes,
       "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1.50, {\"b\": "
       "null}]}}\n</tool_call>",
       {.calls = {{"f", R"({"a": [1.50, {"b": null}]})"}}}},
      {ToolSyntax::kHermes,
       "Let me look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"Zürich \\\"x\\\" "
       "</tool_call>\"}}\n</tool_call>\nand\n<tool_call>{\"name\":\"g\"}</tool_call> done",
       {.content = "Let me look.\nand done",
        .calls = {{"f", R"({"a": "Zürich \"x\" </tool_call>"})"}, {"g", "{}"}}}},
      {ToolSyntax::kHermes,
       "<tool_call>[{\"name\": \"f\", \"arguments\": {}}, {\"arguments\": {\"a\": 1}, \"name\": "
       "\"g\"}]</tool_call>",
       {.calls = {{"f", "{}"}, {"g", "{\"a\": 1}"}}}},
      {ToolSyntax::kHermes,
       R"(<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call>)",
       {.calls = {{"f", R"({"a": 1})"}}}},
      {ToolSyntax::kQwenXml,
       "hi\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis <b>\n\n</parameter>\n"
       "<parameter=days>\n3\n</parameter>\n<parameter=zip>\n10\n</parameter>\n"
       "<parameter=else>\n[1, 2]\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n"
       "<function=now>\n</function>\n</tool_call>",
       {.content = "hi",
        .calls = {{"get_weather",
                   R"({"city": "Paris <b>\n", "days": 3, "zip": "10", "else": [1, 2]})"},
                  {"now", "{}"}}}},
      {ToolSyntax::kQwenXml,
       "<function=now>\n</function>\n</tool_call>",
       {.calls = {{"now", "{}"}}}},
      {ToolSyntax::kLlama3,
       R"( {"name": "f", "parameters": {"a": 1}}; {"name": "g", "parameters": {}})",
       {.calls = {{"f", R"({"a": 1})"}, {"g", "{}"}}}},
      {ToolSyntax::kLlama3,
       R"(<|python_tag|>{"type": "function", "name": "f", "parameters": {"a": "}"}})",
       {.calls = {{"f", R"({"a": "}"})"}}}},
      {ToolSyntax::kPythonic,
       R"([get_weather(city="Paris", days=3), a.b(x=-2.5e1, y={'k': [True, None, ()]}, z='it\'s é')])",
       {.calls = {{"get_weather", R"({"city":"Paris","days":3})"},
                  {"a.b", R"({"x":-25.0,"y":{"k":[true,null,[]]},"z":"it's é"})"}}}},
      {ToolSyntax::kMistral,
       R"([TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}])",
       {.calls = {{"f", R"({"a": 1})"}, {"g", "{}"}}}},
      {ToolSyntax::kMistralV11,
       R"(Sure.[TOOL_CALLS]f[CALL_ID]123456789[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{})",
       {.content = "Sure.", .calls = {{"f", R"({"a": 1})"}, {"g", "{}"}}}},
  };
  for (const Case& each : cases)
    EXPECT_EQ(read(calls_in(each.syntax), each.text), each.expected) << each.text;
}

// No text of the model is lost.
TEST(AnswerParser, WhatIsNoCallIsProse) {
  const std::pair<ToolSyntax, std::string_view> cases[] = {
      {ToolSyntax::kHermes, "a < b and <tool> {\"name\": 1} <tool_cal"},
      {ToolSyntax::kHermes, "  two spaces before, three behind   "},
      {ToolSyntax::kHermes, "<tool_call>\nno JSON</tool_call>"},
      {ToolSyntax::kHermes, "<tool_call>{\"city\": \"Paris\"}</tool_call>"},
      {ToolSyntax::kHermes, "<tool_call>{\"name\": 1, \"arguments\": {}}</tool_call>"},
      {ToolSyntax::kHermes, "<tool_call>\n{\"name\": \"f\", \"arg"},
      {ToolSyntax::kQwenXml, "<tool_call>\n<fun>"},
      {ToolSyntax::kLlama3, "{1, 2} is a set"},
      {ToolSyntax::kLlama3, "{\"city\": \"Paris\"}"},
      {ToolSyntax::kLlama3, "so {\"name\": \"f\", \"parameters\": {}}"},
      {ToolSyntax::kPythonic, "[1] and [2]"},
      {ToolSyntax::kPythonic, "[f(1)] takes no name"},
      {ToolSyntax::kPythonic, "[f(x=open('a'))]"},
      {ToolSyntax::kPythonic, "[f(x=1)"},
      {ToolSyntax::kMistral, "[TOOL_CALLS]nothing\nof that kind"},
  };
  for (const auto& [syntax, text] : cases)
    EXPECT_EQ(read(calls_in(syntax), text), Answer{.content = std::string(text)}) << text;
}

TEST(AnswerParser, WhatIsTooDeepOrTooLongIsNoCall) {
  const std::string name(600, 'f');
  auto tools = std::make_shared<std::vector<ToolDefinition>>();
  for (const std::string& each : {name, std::string("f")}) tools->push_back({.name = each});
  const std::pair<ToolSyntax, std::string> cases[] = {
      {ToolSyntax::kPythonic, "[f(x=" + std::string(100, '[') + std::string(100, ']') + ")]"},
      {ToolSyntax::kQwenXml, "<tool_call>\n<function=" + name + ">\n</function>\n</tool_call>"},
      {ToolSyntax::kMistralV11, "[TOOL_CALLS]" + name + "[ARGS]{}"},
  };
  for (const auto& [syntax, text] : cases) {
    const AnswerParserOptions options = {
        .tool_syntax = syntax, .reads_calls = true, .tools = tools};
    EXPECT_EQ(read(options, text), Answer{.content = text}) << text;
  }
}

TEST(AnswerParser, AMarkMayStandBehindABeginningOfOne) {
  for (const std::string beginning : {"<", "<tool_"}) {
    EXPECT_EQ(read(calls_in(ToolSyntax::kHermes), beginning + "<tool_call>{\"name\": \"f\"}"),
              (Answer{.content = beginning, .calls = {{"f", "{}"}}}));
  }
}

// A stream has already sent the first name when a second one arrives.
TEST(AnswerParser, ACallsFirstNameCounts) {
  for (const std::string_view call :
       {R"({"name": "f", "name": "g"})", R"({"name": "f", "arguments": {}, "name": "g"})",
        R"({"arguments": {}, "name": "f", "name": "g"})"}) {
    EXPECT_EQ(read(calls_in(ToolSyntax::kLlama3), call), (Answer{.calls = {{"f", "{}"}}})) << call;
  }
}

TEST(AnswerParser, OneCallWhereOneIsWanted) {
  for (const auto& [syntax, text] : {
           std::pair(ToolSyntax::kHermes,
                     R"(<tool_call>{"name": "f"}</tool_call><tool_call>{"name": "g"}</tool_call>)"),
           std::pair(ToolSyntax::kPythonic, R"([f(), g()])"),
           std::pair(ToolSyntax::kLlama3, R"({"name": "f"}; {"name": "g"})"),
       }) {
    AnswerParserOptions options = calls_in(syntax);
    options.reads_one_call = true;
    EXPECT_EQ(read(options, text), (Answer{.calls = {{"f", "{}"}}})) << text;
  }
}

TEST(AnswerParser, ThoughtsComeApart) {
  AnswerParserOptions options = {.thought = ThoughtMarks{"<think>", "</think>"}};
  EXPECT_EQ(read(options, "<think>\nSo, 1 < 2.\n\n</think>\n\nYes. \n"),
            (Answer{.content = "Yes. \n", .thought = "So, 1 < 2."}));
  EXPECT_EQ(read(options, "\n<think>cut </thi"), (Answer{.thought = "cut </thi"}));
  EXPECT_EQ(read(options, "<think></think>"), Answer());
  EXPECT_EQ(read(options, " no <think>thought</think>"),
            (Answer{.content = " no <think>thought</think>"}));
  EXPECT_EQ(read(options, "<thin"), (Answer{.content = "<thin"}));
  options.begins_in_thought = true;
  EXPECT_EQ(read(options, "\nSo.</think>Yes."), (Answer{.content = "Yes.", .thought = "So."}));
  EXPECT_EQ(read(options, "So"), (Answer{.thought = "So"}));
}

TEST(AnswerParser, CallsBehindThoughts) {
  for (const auto& [syntax, call] :
       {std::pair(ToolSyntax::kHermes, "<tool_call>{\"name\": \"f\"}</tool_call>"),
        std::pair(ToolSyntax::kLlama3, "{\"name\": \"f\"}"),
        std::pair(ToolSyntax::kPythonic, "[f()]")}) {
    AnswerParserOptions options = calls_in(syntax);
    options.thought = ThoughtMarks{"<think>", "</think>"};
    EXPECT_EQ(read(options, std::string("<think>I call <tool_call>.</think>\n\n") + call),
              (Answer{.thought = "I call <tool_call>.", .calls = {{"f", "{}"}}}));
  }
}

// Answers from 200 seeds in each syntax, made of calls, marks and fragments of both.
TEST(AnswerParser, TellsTheSameHoweverTheTextIsCut) {
  const std::string_view pieces[] = {"<tool_call>",
                                     "</tool_call>",
                                     "\n",
                                     " ",
                                     "<function=f>",
                                     "</function>",
                                     "<parameter=a>",
                                     "</parameter>",
                                     "[TOOL_CALLS]",
                                     "[ARGS]",
                                     "f",
                                     "{\"name\": \"f\", \"arguments\": {\"a\": 1}}",
                                     "{\"name\": \"f\"",
                                     ", \"arguments\": ",
                                     "{\"x\": \"}\\\"\"}",
                                     "NaN",
                                     ", ",
                                     "{",
                                     "}",
                                     "[",
                                     "]",
                                     "[f(a='b')",
                                     "; ",
                                     "\"",
                                     "é",
                                     "<think>",
                                     "</think>",
                                     "<|python_tag|>",
                                     "text"};
  for (int seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::string text;
    for (int i = 0; i < 12; ++i) text += pieces[random() % std::size(pieces)];
    for (const ToolSyntax syntax : kAllSyntaxes) {
      AnswerParserOptions options = calls_in(syntax);
      if (seed % 2 == 0) options.thought = ThoughtMarks{"<think>", "</think>"};
      options.holds_calls_back = seed % 3 == 0;
      SCOPED_TRACE("seed " + std::to_string(seed));
      read(options, text);
    }
  }
}

// A reader that starts again at each mark would take quadratic time.
TEST(AnswerParser, LongAnswersTakeLinearTime) {
  std::string text;
  while (text.size() < (4 << 20)) text += "<tool_call>{\"";
  for (const ToolSyntax syntax : kAllSyntaxes)
    EXPECT_EQ(read_in_pieces(calls_in(syntax), text, {}).content.size(), text.size());
  const std::string white_space(4 << 20, '\n');
  AnswerParserOptions options = calls_in(ToolSyntax::kLlama3);
  options.thought = ThoughtMarks{"<think>", "</think>"};
  EXPECT_EQ(read_in_pieces(options, white_space + "a", {}).content.size(), white_space.size() + 1);
  EXPECT_EQ(read_in_pieces(options, R"({"name": "f"};)" + white_space + R"({"name": "g"})", {})
                .calls.size(),
            2u);
}

}  // namespace
}  // namespace pagoda
