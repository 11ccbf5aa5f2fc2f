// A row in steady state takes no memory: everything that the sampler needs it has taken at its
// construction.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sampling/sampler.h"
#include "tests/support/count_news.h"

namespace pagoda {
namespace {

TEST(SamplerAllocation, ARowTakesNoMemory) {
  std::vector<float> row(5000);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = std::sin(static_cast<float>(i));
  const std::vector<SamplingParams> kinds = {
      {.temperature = 0}, {},
      {.top_k = 20},      {.top_k = 2000, .top_p = 0.9f, .min_p = 0.01f},
      {.top_p = 0.9f},    {.repetition_penalty = 1.1f, .frequency_penalty = 0.5f, .logprobs = 0}};
  Sampler sampler(5000);
  SamplerState state(kinds.back(), 100);
  std::vector<int> tokens(100, 7);
  const std::size_t before = testing::num_news();
  for (int position = 1; position < 100; ++position) {
    const SamplingParams& params = kinds[position % kinds.size()];
    state.sync(std::span(tokens).first(position), 1);
    const Result<SampledToken> token =
        sampler.sample({.logits = row, .params = &params, .state = &state, .position = position});
    tokens[position] = token->token_id;
  }
  EXPECT_EQ(testing::num_news(), before);
  const auto* probe = new int(1);  // the counter counts
  EXPECT_EQ(testing::num_news(), before + 1);
  delete probe;
}

}  // namespace
}  // namespace pagoda
