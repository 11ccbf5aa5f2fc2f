#include "serving/thought_budget.h"

#include <gmock/gmock.h>

#include "text/grammar_test_rig.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;

class ThoughtBudgetTest : public GrammarTest {
 protected:
  std::unique_ptr<TokenMaskSource> start_budget(const Tokenizer& tokenizer, int num_tokens,
                                                bool begins_in_thought,
                                                const TokenMaskSource* inner = nullptr) {
    const std::shared_ptr<const Tokenizer> shared(std::shared_ptr<const Tokenizer>(), &tokenizer);
    return (*ThoughtBudget::make(shared, {num_tokens, {"<think>", "</think>"}, begins_in_thought},
                                 inner))
        ->clone();
  }
  // Accepts all tokens of a text, and checks that each is allowed.
  void feed(TokenMaskSource& source, const Tokenizer& tokenizer, std::string_view text) {
    for (const int id : *tokenizer.encode(text, {.add_special_tokens = false})) {
      EXPECT_THAT(allowed(source), ::testing::Contains(id)) << text;
      EXPECT_TRUE(source.accept(id).ok());
    }
  }
  // Returns whether each token of a text in turn is the only one allowed.
  bool must_come(TokenMaskSource& source, const Tokenizer& tokenizer, std::string_view text) {
    for (const int id : *tokenizer.encode(text, {.add_special_tokens = false})) {
      if (allowed(source) != std::vector<int>{id} || !source.accept(id).ok()) return false;
    }
    return true;
  }
};

TEST_F(ThoughtBudgetTest, EndsAThoughtThatIsAsLongAsItMayBe) {
  const auto special = make_tokenizer({}, {"<think>", "</think>"});
  for (const Tokenizer* tokenizer : {&*tokenizer_, &*special}) {
    for (const bool begins : {false, true}) {
      const auto source = start_budget(*tokenizer, 3, begins);
      if (!begins) feed(*source, *tokenizer, "\n<think>");
      feed(*source, *tokenizer, "xyz");
      EXPECT_TRUE(must_come(*source, *tokenizer, "</think>"));
      feed(*source, *tokenizer, "and <think>again, for as long as it takes");
      EXPECT_GT(allowed(*source).size(), 100u);
    }
    const auto none = start_budget(*tokenizer, 0, /*begins_in_thought=*/true);
    EXPECT_TRUE(must_come(*none, *tokenizer, "</think>"));
  }
}

TEST_F(ThoughtBudgetTest, LeavesShortThoughtsAndOtherAnswersAlone) {
  const auto thought = start_budget(*tokenizer_, 12, true);
  feed(*thought, *tokenizer_, "xyz</think>and more than twelve tokens of an answer");
  EXPECT_GT(allowed(*thought).size(), 100u);
  const auto answer = start_budget(*tokenizer_, 3, false);
  feed(*answer, *tokenizer_, "no thought: <think>xyz");
  EXPECT_GT(allowed(*answer).size(), 100u);
}

TEST_F(ThoughtBudgetTest, AGrammarHoldsTheAnswerBesides) {
  const auto inner = start(GrammarKind::kRegex, "<think>(?s:.*)</think>[0-9]+");
  const auto source = start_budget(*tokenizer_, 2, false, &*inner);
  feed(*source, *tokenizer_, "<think>xy");
  EXPECT_TRUE(must_come(*source, *tokenizer_, "</think>"));
  const auto copy = source->clone();
  feed(*copy, *tokenizer_, "12");
  EXPECT_FALSE(copy->is_stopped());
  // A grammar without thoughts is not overridden.
  const auto digits = start(GrammarKind::kRegex, "[0-9]{4}");
  const auto begun = start_budget(*tokenizer_, 0, true, &*digits);
  feed(*begun, *tokenizer_, "1234");
}

}  // namespace
}  // namespace pagoda
