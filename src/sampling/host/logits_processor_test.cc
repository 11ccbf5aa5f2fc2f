#include "sampling/host/logits_processor.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "sampling/host/sampler.h"
#include "sampling/token_rules.h"

namespace pagoda {
namespace {

// Makes the token after the last one the likeliest, in requests with seed 7.
class NextToken : public LogitsProcessor {
 public:
  explicit NextToken(float logit = 50) : logit_(logit) {}

  bool acts_on(const LogitsContext& row) const override { return row.params.seed == 7; }
  void process(const LogitsContext& row, std::span<float> logits) const override {
    logits[(row.tokens.back() + 1) % logits.size()] = logit_;
  }

 private:
  float logit_;
};

class LogitsProcessorTest : public ::testing::Test {
 protected:
  Result<int> sample(const SamplingParams& params, SamplerState* state = nullptr) {
    return sampler_.sample({.logits = logits_,
                            .params = &params,
                            .state = state,
                            .tokens = tokens_,
                            .num_prompt_tokens = 1});
  }

  std::vector<float> logits_ = {9, 1, 2, 3, 4};
  std::vector<int> tokens_ = {3, 1};
  Sampler sampler_{5, {std::make_shared<NextToken>()}};
};

TEST_F(LogitsProcessorTest, ActsOnGreedyAndRandomRows) {
  EXPECT_EQ(sample({.temperature = 0, .seed = 7}).value(), 2);
  EXPECT_EQ(sample({.seed = 7}).value(), 2);
  EXPECT_EQ(sample({.top_p = 0.9f, .seed = 7}).value(), 2);
}

TEST_F(LogitsProcessorTest, LeavesAloneWhatItDoesNotActOn) {
  EXPECT_EQ(sample({.temperature = 0, .seed = 8}).value(), 0);
}

TEST_F(LogitsProcessorTest, BringsNothingBackThatIsBanned) {
  const auto rules = [](TokenRules made) {
    return std::make_shared<const TokenRules>(std::move(made));
  };
  EXPECT_EQ(
      sample({.temperature = 0, .seed = 7, .token_rules = rules({.bad_words = {{2}}})}).value(), 0);
  EXPECT_EQ(
      sample({.temperature = 0, .seed = 7, .token_rules = rules({.allowed_tokens = {0b1010}})})
          .value(),
      3);
  // The processor sees biases, and the logits that it sets replace them.
  EXPECT_EQ(sample({.temperature = 0, .seed = 7, .token_rules = rules({.logit_bias = {{2, -90}}})})
                .value(),
            2);
}

TEST_F(LogitsProcessorTest, PenaltiesComeAfterIt) {
  const SamplingParams params = {.temperature = 0, .frequency_penalty = 2, .seed = 7};
  tokens_ = {3, 2, 2, 2, 1};
  SamplerState state(params, 5);
  state.sync(tokens_, 1);
  logits_[0] = 46;
  EXPECT_EQ(sample(params, &state).value(), 0);  // 50 - 3 * 2
}

TEST_F(LogitsProcessorTest, WhatIsNoNumberFailsTheRowAlone) {
  Sampler broken(5, {std::make_shared<NextToken>(std::numeric_limits<float>::quiet_NaN())});
  const auto run = [&](std::uint64_t seed) {
    const SamplingParams params = {.temperature = 0, .seed = seed};
    return broken.sample({.logits = logits_, .params = &params, .tokens = tokens_}).status().code();
  };
  EXPECT_EQ(run(7), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(8), StatusCode::kOk);
}

}  // namespace
}  // namespace pagoda
