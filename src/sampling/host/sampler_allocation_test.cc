// Sampling a row allocates no memory in steady state: the sampler's constructor has allocated all
// that it needs.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sampling/host/sampler.h"
#include "sampling/token_rules.h"
#include "tests/support/count_news.h"

namespace pagoda {
namespace {

TEST(SamplerAllocation, ARowTakesNoMemory) {
  std::vector<float> row(5000);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = std::sin(static_cast<float>(i));
  const std::vector<SamplingParams> kinds = {
      {.temperature = 0},
      {},
      {.top_k = 20},
      {.top_k = 2000, .top_p = 0.9f, .min_p = 0.01f},
      {.top_p = 0.9f},
      {.typical_p = 0.5f, .xtc_probability = 0.5f},
      {.mirostat = 2},
      {.dynatemp_range = 0.5f, .dry_multiplier = 1},
      {.token_rules = std::make_shared<const TokenRules>(
           TokenRules{.logit_bias = {{7, 1}}, .bad_words = {{7, 8}}})},
      {.repetition_penalty = 1.1f, .frequency_penalty = 0.5f}};
  Sampler sampler(5000);
  std::vector<SamplerState> states;
  for (const SamplingParams& params : kinds) states.emplace_back(params, 100);
  std::vector<int> tokens(100, 7);
  const std::size_t before = testing::num_news();
  for (int position = 1; position < 100; ++position) {
    SamplerState& state = states[position % kinds.size()];
    const std::span<const int> known = std::span(tokens).first(position);
    state.sync(known, 1);
    const Result<int> token = sampler.sample({.logits = row,
                                              .params = &kinds[position % kinds.size()],
                                              .state = &state,
                                              .tokens = known,
                                              .num_prompt_tokens = 1,
                                              .position = position});
    tokens[position] = *token;
  }
  EXPECT_EQ(testing::num_news(), before);
  const auto* probe = new int(1);  // shows that the counter works
  EXPECT_EQ(testing::num_news(), before + 1);
  delete probe;
}

}  // namespace
}  // namespace pagoda
