// Tests that tools and calls with 100,000 properties take about as long as parsing their JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "answer/answer_grammar.h"
#include "answer/answer_parser.h"
#include "answer/tool_messages.h"
#include "core/json.h"
#include "tests/support/seconds_of.h"
#include "text/grammar.h"

namespace pagoda {
namespace {

constexpr int kNumProperties = 100'000;

// Returns members with `assigns` between name and value. They are not sorted by name.
std::string many_members(std::string_view quote, std::string_view assigns) {
  std::string text;
  for (int i = 0; i < kNumProperties; ++i)
    text += fmt::format("{}{}p{}{}{}{{}}", i > 0 ? "," : "", quote, i * 7919LL % 1'000'003, quote,
                        assigns);
  return text;
}

// Returns parameters that are all required. Each could refer to the definitions, which are as long
// as all properties together.
std::string many_parameters() {
  std::string required;
  for (int i = 0; i < kNumProperties; ++i)
    required += fmt::format("{}\"p{}\"", i > 0 ? "," : "", i * 7919LL % 1'000'003);
  return fmt::format(R"({{"type": "object", "properties": {{{}}}, "required": [{}],
                          "$defs": {{"d": {{"enum": ["{}"]}}}}}})",
                     many_members("\"", ":"), required, std::string(1 << 20, 'x'));
}

// Comparing each name with all others, or copying the definitions for each, takes hundreds of times
// as long.
TEST(ManyProperties, AToolOfThemIsNoMoreThanItsText) {
  const std::string parameters = many_parameters();
  const std::string tools = fmt::format(
      R"([{{"type": "function", "function": {{"name": "f", "parameters": {}}}}}])", parameters);
  const double reading_s = testing::seconds_of([&] { EXPECT_TRUE(parse_json(tools).is_array()); });
  const double limit_s = 1 + 50 * reading_s;
  EXPECT_LT(testing::seconds_of([&] {
              OrderedJson messages = parse_ordered_json(R"([{"role": "user", "content": "hi"}])");
              describe_tools(messages, parse_ordered_json(tools));
            }),
            limit_s);
  const std::vector<ToolDefinition> definitions = {{.name = "f", .parameters_json = parameters}};
  for (const ToolSyntax syntax :
       {ToolSyntax::kHermes, ToolSyntax::kPythonic, ToolSyntax::kQwenXml}) {
    const AnswerGrammarOptions options = {
        .syntax = syntax, .special_token_id = [](std::string_view) { return std::nullopt; }};
    std::string grammar;
    EXPECT_LT(testing::seconds_of([&] { grammar = answer_grammar(definitions, options); }),
              limit_s);
    EXPECT_GT(grammar.size(), kMaxGrammarBytes);  // too long, so it is refused
    EXPECT_LT(grammar.size(), 10 * kMaxGrammarBytes);
  }
}

TEST(ManyProperties, ACallOfThemIsNoMoreThanItsText) {
  const std::string json = "{" + many_members("\"", ":") + "}";
  const double limit_s =
      1 + 50 * testing::seconds_of([&] { EXPECT_TRUE(parse_json(json).is_object()); });
  for (const std::string& arguments : {many_members("", "="), "a=" + json}) {
    AnswerParser parser({.tool_syntax = ToolSyntax::kPythonic,
                         .reads_calls = true,
                         .tools = std::make_shared<std::vector<ToolDefinition>>(
                             std::vector<ToolDefinition>{{.name = "f"}})});
    EXPECT_LT(testing::seconds_of([&] {
                parser.push("[f(" + arguments + ")]");
                parser.finish();
              }),
              limit_s);
    EXPECT_EQ(parser.num_calls(), 1);
  }
}

}  // namespace
}  // namespace pagoda
