#include "serving/answer_reader.h"

#include <gmock/gmock.h>

#include "tests/support/fake_model.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Kind = AnswerPart::Kind;
using Parts = std::vector<AnswerPart>;

constexpr std::string_view kThoughtPrompt = "<|im_start|>assistant\n<think>\n";

class AnswerReaderTest : public ::testing::Test {
 protected:
  AnswerForm resolve(std::string_view prompt, const ToolUse& tools,
                     std::optional<GrammarRequest>& grammar) {
    const auto form = resolve_answer_form(*model_, prompt, tools, /*reads_thoughts=*/true, grammar);
    EXPECT_TRUE(form.ok()) << form.status().message();
    return form.ok() ? *form : AnswerForm{};
  }

  std::unique_ptr<ServedModel> model_ = make_fake_model({.thinks = true});
};

TEST_F(AnswerReaderTest, TheLastPieceEndsTheAnswer) {
  AnswerReader reader(AnswerParserOptions{.reads_calls = true});
  EXPECT_EQ(reader.parts_of({.text = "a <tool"}), (Parts{{Kind::kContent, "a"}}));
  EXPECT_EQ(reader.parts_of({.text = "_", .finish_reason = FinishReason::kLength}),
            (Parts{{Kind::kContent, " <tool_"}}));
  EXPECT_FALSE(reader.has_calls());
}

TEST_F(AnswerReaderTest, WithoutAFormAnswersAreContentAsTheyCome) {
  AnswerReader reader(std::nullopt);
  EXPECT_EQ(reader.parts_of({.text = " <think>"}), (Parts{{Kind::kContent, " <think>"}}));
  EXPECT_THAT(reader.parts_of({.finish_reason = FinishReason::kStop}), IsEmpty());
}

TEST_F(AnswerReaderTest, AGrammarThatHoldsTheWholeAnswerLeavesNoThought) {
  std::optional<GrammarRequest> grammar;
  EXPECT_TRUE(resolve(kThoughtPrompt, {}, grammar).parsing->begins_in_thought);
  EXPECT_FALSE(grammar);
  grammar = GrammarRequest{.spec = {.kind = GrammarKind::kRegex, .text = "yes|no"}};
  EXPECT_FALSE(resolve(kThoughtPrompt, {}, grammar).parsing->begins_in_thought);
  EXPECT_EQ(grammar->spec.text, "yes|no");
  grammar = GrammarRequest{.spec = {.kind = GrammarKind::kJsonSchema, .text = "{}"}};
  EXPECT_TRUE(resolve(kThoughtPrompt, {}, grammar).parsing->begins_in_thought);
  EXPECT_EQ(grammar->spec.kind, GrammarKind::kAnswer);
}

TEST_F(AnswerReaderTest, AGrammarHasTheFunctionsThatMayBeCalled) {
  const ToolUse all = {.tools = {{.name = "get_time", .parameters_json = "{}"},
                                 {.name = "get_weather", .parameters_json = "{}"}},
                       .mode = ToolMode::kRequired};
  ToolUse one = all, some = all;
  one.function = "get_weather";
  some.allowed = {"get_weather"};
  const auto grammar_of = [&](const ToolUse& tools) {
    std::optional<GrammarRequest> grammar;
    resolve("", tools, grammar);
    return grammar ? grammar->spec.text : "";
  };
  EXPECT_THAT(grammar_of(all), HasSubstr("get_time"));
  for (const ToolUse& tools : {one, some}) {
    EXPECT_THAT(grammar_of(tools), HasSubstr("get_weather"));
    EXPECT_THAT(grammar_of(tools), Not(HasSubstr("get_time")));
  }
}

}  // namespace
}  // namespace pagoda
