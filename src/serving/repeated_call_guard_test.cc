#include "serving/repeated_call_guard.h"

#include <gmock/gmock.h>

#include "answer/answer_grammar.h"
#include "text/grammar_test_rig.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;

class RepeatedCallGuardTest : public GrammarTest {
 protected:
  // Starts a guard over the grammar of calls of f and g.
  std::unique_ptr<TokenMaskSource> start_guard(ToolSyntax syntax) {
    const auto tools = std::make_shared<std::vector<ToolDefinition>>();
    tools->push_back({.name = "f", .parameters_json = R"({"type": "object", "properties": {
        "a": {"type": "integer"}}, "required": ["a"]})"});
    tools->push_back({.name = "g"});
    const AnswerGrammarOptions options = {
        .syntax = syntax, .special_token_id = [](std::string_view) { return std::nullopt; }};
    const std::shared_ptr<const Tokenizer> shared(std::shared_ptr<const Tokenizer>(), &*tokenizer_);
    return std::make_unique<RepeatedCallGuard>(
        shared, std::vector<int>{eos()},
        AnswerParserOptions{.tool_syntax = syntax, .reads_calls = true, .tools = tools},
        start(GrammarKind::kAnswer, answer_grammar(*tools, options)));
  }
};

TEST_F(RepeatedCallGuardTest, ARepeatedCallIsTheLast) {
  const struct {
    ToolSyntax syntax;
    std::string first, others, repeated;
  } cases[] = {{ToolSyntax::kLlama3, R"({"name": "f", "parameters": {"a": 1}})",
                R"(; {"name": "f", "parameters": {"a": 2}}; {"name": "g", "parameters": {}})",
                R"(; {"name": "f", "parameters": {"a": 1}})"},
               {ToolSyntax::kHermes,
                "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
                "\n<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>",
                "\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"},
               {ToolSyntax::kMistralV11, R"([TOOL_CALLS]f[ARGS]{"a": 1})", "[TOOL_CALLS]g[ARGS]{}",
                R"([TOOL_CALLS]f[ARGS]{"a": 1})"}};
  for (const auto& each : cases) {
    const auto source = start_guard(each.syntax);
    ASSERT_TRUE(takes(*source, each.first + each.others)) << each.first;
    EXPECT_GT(allowed(*source).size(), 1u);
    const auto copy = source->clone();
    for (TokenMaskSource* one : {&*source, &*copy}) {
      ASSERT_TRUE(takes(*one, each.repeated)) << each.repeated;
      EXPECT_THAT(allowed(*one), ElementsAre(eos()));
      EXPECT_FALSE(one->accept(tokenizer_->encode(";").value().at(0)).ok());
    }
  }
}

}  // namespace
}  // namespace pagoda
