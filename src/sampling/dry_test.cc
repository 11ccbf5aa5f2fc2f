#include "sampling/dry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "sampling/host/sampler_state.h"
#include "sampling/token_rules.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;

std::shared_ptr<const TokenRules> breakers(std::vector<int> ids) {
  return std::make_shared<const TokenRules>(TokenRules{.dry_sequence_breakers = std::move(ids)});
}

// Returns the penalty of each token, found by comparing backwards from every earlier place.
std::map<int, double> definition(const SamplingParams& params, const std::vector<int>& history) {
  std::vector<int> tokens = history;
  if (params.dry_penalty_last_n > 0 && params.dry_penalty_last_n < static_cast<int>(tokens.size()))
    tokens.erase(tokens.begin(), tokens.end() - params.dry_penalty_last_n);
  std::set<int> stops;
  if (params.token_rules) {
    stops.insert(params.token_rules->dry_sequence_breakers.begin(),
                 params.token_rules->dry_sequence_breakers.end());
  }
  const int size = static_cast<int>(tokens.size());
  std::map<int, int> longest;
  for (int next = 1; next < size; ++next) {
    int length = 0;
    while (length < next && tokens[next - 1 - length] == tokens[size - 1 - length] &&
           stops.count(tokens[size - 1 - length]) == 0) {
      ++length;
    }
    if (length >= params.dry_allowed_length && stops.count(tokens[next]) == 0)
      longest[tokens[next]] = std::max(longest[tokens[next]], length);
  }
  std::map<int, double> penalties;
  for (const auto& [token, length] : longest) {
    penalties[token] =
        std::min(1e30, params.dry_multiplier *
                           std::pow(double{params.dry_base}, length - params.dry_allowed_length));
  }
  return penalties;
}

std::vector<float> penalised(const SamplingParams& params, const std::vector<int>& history,
                             int vocab_size) {
  SamplerState state(params, static_cast<int>(history.size()));
  state.sync(history, 1);
  std::vector<float> logits(vocab_size, 0.0f);
  state.dry()->apply(params, state.entries(), logits);
  return logits;
}

TEST(Dry, PenalisesWhatWouldGoOnWithARepetition) {
  const SamplingParams params = {.dry_multiplier = 0.5f, .dry_base = 2, .dry_allowed_length = 2};
  // Once 1 2 3 stands in the history, a 3 after 1 2 would complete a repetition.
  EXPECT_THAT(penalised(params, {1, 2, 3, 4, 1, 2}, 6), ElementsAre(0, 0, 0, -0.5f, 0, 0));
  EXPECT_THAT(penalised(params, {1, 2, 3, 4, 1, 2, 3}, 6), ElementsAre(0, 0, 0, 0, -1, 0));
  EXPECT_THAT(penalised(params, {1, 2, 3, 4, 2}, 6), ElementsAre(0, 0, 0, 0, 0, 0));
  // Both 0 1 2 and 1 2 are followed by a 3: the longer match counts.
  EXPECT_THAT(penalised(params, {0, 1, 2, 3, 5, 1, 2, 3, 0, 1, 2}, 6),
              ElementsAre(0, 0, 0, -1, 0, 0));
}

TEST(Dry, AMatchNeverReachesOverABreaker) {
  SamplingParams params = {.dry_multiplier = 1, .dry_base = 2, .dry_allowed_length = 2};
  const std::vector<int> history = {7, 1, 2, 3, 4, 7, 1, 2};
  EXPECT_EQ(penalised(params, history, 8)[3], -2.0f);  // matches 7 1 2
  params.token_rules = breakers({7});
  EXPECT_EQ(penalised(params, history, 8)[3], -1.0f);  // matches 1 2
  params.token_rules = breakers({1});
  EXPECT_EQ(penalised(params, history, 8)[3], 0.0f);  // matches 2
  params.token_rules = breakers({3});
  EXPECT_EQ(penalised(params, history, 8)[3], 0.0f) << "a breaker is not penalised";
}

TEST(Dry, LooksBackOverTheLastTokensAlone) {
  SamplingParams params = {.dry_multiplier = 1, .dry_base = 2, .dry_allowed_length = 2};
  const std::vector<int> history = {1, 2, 3, 4, 1, 2};
  params.dry_penalty_last_n = 6;
  EXPECT_EQ(penalised(params, history, 8)[3], -1.0f);
  params.dry_penalty_last_n = 5;
  EXPECT_EQ(penalised(params, history, 8)[3], 0.0f);
  params.dry_penalty_last_n = 0;
  EXPECT_FALSE(DryState::is_needed(params));
}

TEST(Dry, APenaltyStaysFinite) {
  const SamplingParams params = {.dry_multiplier = 1000, .dry_base = 1000, .dry_allowed_length = 1};
  const std::vector<float> logits = penalised(params, std::vector<int>(3000, 2), 4);
  EXPECT_EQ(logits[2], -1e30f);
  EXPECT_EQ(logits[1], 0.0f);
}

// Histories of few distinct tokens repeat themselves. They are appended in pieces of any size, so
// that both ways to update the runs are tested.
TEST(Dry, EveryPenaltyIsTheDefinitions) {
  constexpr unsigned kSeed = 20261120;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  for (int round = 0; round < 1500; ++round) {
    const int vocab_size = 2 + static_cast<int>(random() % 5);
    const int size = 1 + static_cast<int>(random() % 120);
    SamplingParams params = {.dry_multiplier = 0.25f,
                             .dry_base = 1.0f + 0.25f * static_cast<float>(random() % 4),
                             .dry_allowed_length = 1 + static_cast<int>(random() % 4),
                             .dry_penalty_last_n = static_cast<int>(random() % 100) - 1};
    if (params.dry_penalty_last_n == 0) params.dry_penalty_last_n = -1;
    if (random() % 2 == 0) params.token_rules = breakers({static_cast<int>(random() % vocab_size)});
    std::vector<int> history(size);
    for (int& token : history) {
      const bool rare = random() % 8 == 0;
      token = rare ? static_cast<int>(random() % vocab_size) : static_cast<int>(random() % 2);
    }
    SamplerState state(params, size);
    for (int known = 0; known < size;) {
      known = std::min(size, known + 1 + static_cast<int>(random() % (round % 2 == 0 ? 3 : 40)));
      const std::vector<int> tokens(history.begin(), history.begin() + known);
      state.sync(tokens, 1);
      std::vector<float> logits(vocab_size, 0.0f);
      state.dry()->apply(params, state.entries(), logits);
      const std::map<int, double> expected = definition(params, tokens);
      for (int token = 0; token < vocab_size; ++token) {
        const auto found = expected.find(token);
        const double penalty = found == expected.end() ? 0 : found->second;
        ASSERT_NEAR(-logits[token], penalty, penalty * 1e-6)
            << "round " << round << " at " << known;
      }
    }
  }
}

}  // namespace
}  // namespace pagoda
