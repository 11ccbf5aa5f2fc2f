// Tests of calls that are whole, broken or cut off, in each syntax.
#include <gtest/gtest.h>

#include "answer/answer_reading_rig.h"

namespace pagoda {
namespace {

TEST(AnswerParser, ANameThatIsNotAmongTheToolsIsNoCall) {
  const std::pair<ToolSyntax, std::string> cases[] = {
      {ToolSyntax::kHermes, "<tool_call>{\"name\": \"h\", \"arguments\": {}}</tool_call>"},
      {ToolSyntax::kHermes, "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>"},
      {ToolSyntax::kHermes, "<tool_call>{\"arguments\": {}, \"name\": \"h\"}</tool_call>"},
      {ToolSyntax::kQwenXml, "To call, write <function=NAME> and then the parameters."},
      {ToolSyntax::kQwenXml, "<function=h>\n</function>"},
      {ToolSyntax::kLlama3, "{\"name\": \"Ann\", \"parameters\": {}}"},
      {ToolSyntax::kPythonic, "[see(note=1)] in the text"},
      {ToolSyntax::kPythonic, "[f(a=1), h(a=1)]"},
      {ToolSyntax::kMistral, "[TOOL_CALLS][{\"name\": \"h\", \"arguments\": {}}]"},
      {ToolSyntax::kMistralV11, "[TOOL_CALLS]h[ARGS]{}"},
  };
  for (const auto& [syntax, text] : cases)
    EXPECT_EQ(read(calls_in(syntax), text), Answer{.content = text}) << text;
  EXPECT_EQ(read({.reads_calls = true}, "<tool_call>{\"name\": \"f\"}").calls.size(), 0u);
}

// As in OpenAI's API, the arguments so far are returned.
TEST(AnswerParser, ACallThatIsCutOffKeepsWhatCame) {
  EXPECT_EQ(read(calls_in(ToolSyntax::kHermes),
                 "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1, \"b"),
            (Answer{.calls = {{"f", R"({"a": 1, "b)"}}, .is_broken = true}));
  EXPECT_EQ(read(calls_in(ToolSyntax::kHermes),
                 "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_"),
            (Answer{.calls = {{"f", R"({"a": 1})"}}}));
  EXPECT_EQ(read(calls_in(ToolSyntax::kQwenXml),
                 "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n<param"),
            (Answer{.calls = {{"f", R"({"a": 1)"}}, .is_broken = true}));
}

TEST(AnswerParser, ASecondCallThatIsCutOffIsProse) {
  EXPECT_EQ(read(calls_in(ToolSyntax::kLlama3), R"({"name": "f"}; {"na)"),
            (Answer{.content = R"(; {"na)", .calls = {{"f", "{}"}}}));
}

TEST(AnswerParser, ArgumentsThatAreNoJsonAreABrokenCall) {
  for (const std::string arguments :
       {"{\"a\": 1, \n", "{\"a\": 1,}", "{\"a\": NaN}", "{a: 1}", "{\"a\" 1}", "{\"a\": [1}}",
        "{\"a\": \"\\x\"}", "{'a': <b>}", "{\"a\": 1e}", "{\"a\": \"\\ud800\"}"}) {
    const std::string text =
        "<tool_call>\n{\"name\": \"f\", \"arguments\": " + arguments + "}\n</tool_call>\nrest";
    AnswerParserOptions options = calls_in(ToolSyntax::kHermes);
    const Answer answer = read(options, text);
    EXPECT_TRUE(answer.is_broken) << text;
    EXPECT_EQ(answer.content, "\nrest") << text;
    ASSERT_EQ(answer.calls.size(), 1u) << text;
    EXPECT_TRUE(answer.calls[0].second.starts_with(arguments.substr(0, arguments.size() - 1)))
        << text;
    options.holds_calls_back = true;
    EXPECT_EQ(read(options, text), Answer{.content = text});
  }
}

TEST(AnswerParser, ControlCharactersInStringsAreEscaped) {
  for (const bool holds_calls_back : {false, true}) {
    AnswerParserOptions options = calls_in(ToolSyntax::kHermes);
    options.holds_calls_back = holds_calls_back;
    EXPECT_EQ(
        read(options,
             "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"1\n\t\x01\",\n\"b\": 2}}"),
        (Answer{.calls = {{"f", "{\"a\": \"1\\n\\t\\u0001\",\n\"b\": 2}"}}}));
    EXPECT_EQ(read(options, "<tool_call>{\"arguments\": {\"a\": \"1\n\"}, \"name\": \"f\"}"),
              (Answer{.calls = {{"f", "{\"a\": \"1\\n\"}"}}}));
  }
}

// Each text is the rest of a call behind its name.
TEST(AnswerParser, WhatStandsAroundArgumentsIsNotContent) {
  for (const std::string rest :
       {R"("arguments": {"a": 1}})", R"("arguments": {"a": 1})", R"("arguments": {"a": 1}}})",
        R"("arguments": {"a": 1}}}])", R"("arguments": {"a": 1}, "n": 3})",
        R"("arguments": {"a": 1}, "n": {"k": [1, "</tool_call>"]}, "m": null})",
        R"("arguments": {"a": 1},})", R"("arguments": {"a": 1}, "n)",
        R"("thought": {"arguments": {}}, "arguments": {"a": 1}})",
        R"("n": "x", "arguments": "{\"a\": 1}"})"}) {
    for (const bool holds_calls_back : {false, true}) {
      AnswerParserOptions options = calls_in(ToolSyntax::kHermes);
      options.holds_calls_back = holds_calls_back;
      const std::string call = "<tool_call>\n{\"name\": \"f\", " + rest;
      if (!rest.ends_with("\"n")) {
        EXPECT_EQ(read(options, call + "\n</tool_call>end"),
                  (Answer{.content = "end", .calls = {{"f", R"({"a": 1})"}}}))
            << rest;
      }
      EXPECT_EQ(read(options, call), (Answer{.calls = {{"f", R"({"a": 1})"}}})) << rest;
    }
  }
  EXPECT_EQ(
      read(calls_in(ToolSyntax::kHermes),
           R"(<tool_call>{"name": "f", "arguments": {} <tool_call>{"name": "g"}</tool_call>)"),
      (Answer{.calls = {{"f", "{}"}, {"g", "{}"}}}));
  EXPECT_EQ(read(calls_in(ToolSyntax::kHermes),
                 R"(<tool_call>[{"name": "f", "arguments": {}}}, {"name": "g"}</tool_call>.)"),
            (Answer{.content = ".", .calls = {{"f", "{}"}, {"g", "{}"}}}));
  EXPECT_EQ(read(calls_in(ToolSyntax::kHermes), R"(<tool_call>{"name": "f"}} is prose)"),
            (Answer{.content = "} is prose", .calls = {{"f", "{}"}}}));
}

// No call runs without arguments because they were not understood.
TEST(AnswerParser, UnreadArgumentsAreNoCall) {
  for (const std::string rest : {R"(, "city": "Paris"})", R"(, "arguments": 5})",
                                 R"(, "arguments": [1]})", R"(, "arguments": "a"})", ""}) {
    const std::string text = "<tool_call>{\"name\": \"f\"" + rest;
    EXPECT_EQ(read(calls_in(ToolSyntax::kHermes), text), Answer{.content = text});
  }
  EXPECT_EQ(read(calls_in(ToolSyntax::kHermes), R"(<tool_call>{"name": "f", "arguments": null})"),
            (Answer{.calls = {{"f", "{}"}}}));
}

TEST(AnswerParser, BareCallsMayBeDividedByALineEnd) {
  EXPECT_EQ(read(calls_in(ToolSyntax::kLlama3),
                 "{\"name\": \"f\", \"parameters\": {\"a\": 1}}\n{\"name\": \"g\"}\n{\"x\": 1}"),
            (Answer{.content = "\n{\"x\": 1}", .calls = {{"f", R"({"a": 1})"}, {"g", "{}"}}}));
}

TEST(AnswerParser, PythonsStringsMayHaveThreeQuotes) {
  const std::pair<std::string, std::string> cases[] = {
      {"'''tri'''", R"("tri")"},
      {R"("""a "b" ')]\n\"""")", R"("a \"b\" ')]\n\"")"},
      {"''''''", R"("")"},
      {R"("", y='')", R"("","y":"")"}};
  for (const auto& [text, json] : cases) {
    EXPECT_EQ(read(calls_in(ToolSyntax::kPythonic), "[f(x=" + text + ")]"),
              (Answer{.calls = {{"f", "{\"x\":" + json + "}"}}}))
        << text;
  }
}

TEST(AnswerParser, CallsAreHeldBackUntilTheyAreWhole) {
  AnswerParserOptions options = calls_in(ToolSyntax::kMistral);
  options.holds_calls_back = true;
  AnswerParser parser(options);
  const std::string begin = R"([TOOL_CALLS][{"name": "f", "arguments": {"a": 1)";
  EXPECT_TRUE(parser.push(begin).empty());
  EXPECT_EQ(parser.push("}").size(), 3u);
  EXPECT_EQ(read(options, begin), Answer{.content = begin});
  const std::string second = R"(, {"name": "g", "arguments": {"b)";
  EXPECT_EQ(read(options, begin + "}}" + second),
            (Answer{.content = "}" + second, .calls = {{"f", R"({"a": 1})"}}}));
}

TEST(AnswerParser, AnAnswerOfCallsAloneHasNoContentOfACutBeginning) {
  const std::pair<ToolSyntax, std::string> cases[] = {
      {ToolSyntax::kHermes, "<tool_call>\n{\"name\": \"f\", \"argu"},
      {ToolSyntax::kQwenXml, "<tool_call>\n<function=f>\n<parameter=a"},
      {ToolSyntax::kLlama3, R"({"name": "f", )"},
      {ToolSyntax::kPythonic, "[f("},
      {ToolSyntax::kMistral, R"([TOOL_CALLS][{"name": "f")"},
      {ToolSyntax::kMistralV11, "[TOOL_CALLS]f[AR"}};
  for (const auto& [syntax, text] : cases) {
    for (const bool thinks : {false, true}) {
      AnswerParserOptions options = calls_in(syntax);
      options.has_only_calls = true;
      if (thinks) options.thought = ThoughtMarks{"<think>", "</think>"};
      for (std::size_t size = 0; size <= text.size(); ++size)
        EXPECT_EQ(read(options, text.substr(0, size)), Answer()) << text.substr(0, size);
    }
  }
}

}  // namespace
}  // namespace pagoda
