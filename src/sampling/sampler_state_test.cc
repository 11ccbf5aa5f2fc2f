#include "sampling/sampler_state.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

#include "tests/support/property_seed.h"

namespace pagoda {
namespace {

TEST(SamplerState, IsNeededByPenaltiesAlone) {
  SamplingParams params;
  params.min_p = 0.1f;
  params.min_tokens = 3;
  EXPECT_FALSE(SamplerState::is_needed(params));
  params.repetition_penalty = 1.1f;
  EXPECT_TRUE(SamplerState::is_needed(params));
  params = {.presence_penalty = 0.1f};
  EXPECT_TRUE(SamplerState::is_needed(params));
  params = {.frequency_penalty = -0.1f};
  EXPECT_TRUE(SamplerState::is_needed(params));
}

TEST(ApplyPenalties, FollowsTheDefinitions) {
  const SamplingParams params = {
      .repetition_penalty = 2, .presence_penalty = 0.5f, .frequency_penalty = 0.25f};
  SamplerState state(params, 8);
  const std::vector<int> tokens = {0, 1, 1, /*output*/ 2, 2, 1};
  state.sync(tokens, 3);
  std::vector<float> logits = {4, -4, 3, 2};
  apply_penalties(params, state.entries(), logits);
  EXPECT_EQ(logits[0], 2.0f);                     // in the prompt alone
  EXPECT_EQ(logits[1], -8.0f - 0.25f - 0.5f);     // once in the output
  EXPECT_EQ(logits[2], 1.5f - 2 * 0.25f - 0.5f);  // twice
  EXPECT_EQ(logits[3], 2.0f);                     // never
}

// Absorbing a history piece by piece counts what a look at the whole counts.
RC_GTEST_PROP(SamplerStateProperty, AnAppendedTailEqualsARebuild, ()) {
  const auto tokens = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(
      rc::gen::oneOf(rc::gen::inRange(0, 6), rc::gen::inRange(0, 1 << 18))));
  const int num_tokens = static_cast<int>(tokens.size());
  const int num_prompt_tokens = *rc::gen::inRange(1, num_tokens + 1);
  SamplerState state({.repetition_penalty = 2}, num_tokens);
  int num_synced = num_prompt_tokens;
  while (true) {
    state.sync(std::span(tokens).first(num_synced), num_prompt_tokens);
    std::map<int, int> output_counts;
    for (int i = 0; i < num_synced; ++i) output_counts[tokens[i]] += i >= num_prompt_tokens;
    RC_ASSERT(state.entries().size() == output_counts.size());
    for (const SeenToken& entry : state.entries()) {
      RC_ASSERT(output_counts.count(entry.token_id) == 1u);
      RC_ASSERT(output_counts[entry.token_id] == entry.output_count);
    }
    if (num_synced == num_tokens) break;
    num_synced = *rc::gen::inRange(num_synced + 1, num_tokens + 1);
  }
}

}  // namespace
}  // namespace pagoda
