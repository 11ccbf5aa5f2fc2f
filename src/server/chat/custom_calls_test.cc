#include "server/chat/custom_calls.h"

#include <gtest/gtest.h>

#include <tuple>

namespace pagoda {
namespace {

using Kind = AnswerPart::Kind;

CustomCalls patch_calls() {
  return CustomCalls(std::make_shared<const std::vector<ToolDefinition>>(
      std::vector<ToolDefinition>{{.name = "patch", .is_custom = true}, {.name = "f"}}));
}

// Returns the input of a call whose arguments come in two pieces.
std::string input_of(std::string_view arguments, std::size_t cut, bool is_whole) {
  CustomCalls calls = patch_calls();
  std::string input;
  const auto take = [&](std::vector<AnswerPart> parts) {
    calls.tell_inputs(parts);
    for (const AnswerPart& part : parts) {
      if (part.kind == Kind::kArguments) input += part.text;
    }
  };
  take({{Kind::kCall, "patch"}, {Kind::kArguments, std::string(arguments.substr(0, cut))}});
  take({{Kind::kArguments, std::string(arguments.substr(cut))}});
  if (is_whole) take({{Kind::kCallEnd, ""}});
  return input;
}

TEST(CustomCalls, TheTextIsTheSameHoweverItIsCut) {
  const std::tuple<std::string_view, std::string_view, bool> cases[] = {
      {R"({"input": "a\n\"b\" \\ \/ \u00e9\ud83d\ude00 }"})", "a\n\"b\" \\ / é😀 }", true},
      {"{ \"input\"\n: \"a\" }", "a", true},
      {R"({"input":""})", "", true},
      {R"({"input": "a", "other": 1})", "a", true},
      {R"({"input": "ab\u00)", "ab", false},
      {R"({"inp)", "", false},
      {"{}", "{}", true},
      {R"({"input": 1})", R"({"input": 1})", true},
      {R"({"in put": "a"})", R"({"in put": "a"})", true},
      {R"({"text": "a"})", R"({"text": "a"})", true},
      {R"({"text": "a)", R"({"text": "a)", false},
  };
  for (const auto& [arguments, input, is_whole] : cases) {
    for (std::size_t cut = 0; cut <= arguments.size(); ++cut)
      EXPECT_EQ(input_of(arguments, cut, is_whole), input) << arguments << " cut at " << cut;
  }
}

TEST(CustomCalls, OtherPartsStayAsTheyAre) {
  CustomCalls calls = patch_calls();
  const std::vector<AnswerPart> others = {{Kind::kContent, "a"},
                                          {Kind::kCall, "patch"},
                                          {Kind::kCallEnd, ""},
                                          {Kind::kCall, "f"},
                                          {Kind::kArguments, R"({"input": "a"})"},
                                          {Kind::kCallEnd, ""}};
  std::vector<AnswerPart> parts = others;
  calls.tell_inputs(parts);
  EXPECT_EQ(parts, others);
  parts = others;
  CustomCalls(nullptr).tell_inputs(parts);
  EXPECT_EQ(parts, others);
  EXPECT_TRUE(calls.has("patch"));
  EXPECT_FALSE(calls.has("f"));
  EXPECT_FALSE(calls.has("g"));
}

}  // namespace
}  // namespace pagoda
