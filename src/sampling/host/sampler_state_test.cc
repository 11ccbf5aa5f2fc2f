#include "sampling/host/sampler_state.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <map>
#include <random>
#include <vector>

#include "core/half.h"
#include "sampling/host/sampler.h"
#include "sampling/token_rules.h"

namespace pagoda {
namespace {

constexpr unsigned kSeed = 20261120;

TEST(SamplerState, IsNeededByWhatLooksAtThePastAlone) {
  SamplingParams params = {.dynatemp_range = 1,
                           .top_k = 5,
                           .top_p = 0.5f,
                           .min_p = 0.1f,
                           .typical_p = 0.5f,
                           .xtc_probability = 1,
                           .min_tokens = 3};
  EXPECT_FALSE(SamplerState::is_needed(params));
  params.repetition_penalty = 1.1f;
  EXPECT_TRUE(SamplerState::is_needed(params));
  EXPECT_TRUE(SamplerState::is_needed({.presence_penalty = 0.1f}));
  EXPECT_TRUE(SamplerState::is_needed({.frequency_penalty = -0.1f}));
  EXPECT_FALSE(SamplerState::is_needed({.repetition_penalty = 2, .repeat_last_n = 0}));
  EXPECT_FALSE(SamplerState::is_needed({.repeat_last_n = 5}));
  EXPECT_TRUE(SamplerState::is_needed({.repetition_penalty = 2, .repeat_last_n = 1}));
  EXPECT_TRUE(SamplerState::is_needed({.dry_multiplier = 0.1f}));
  EXPECT_FALSE(SamplerState::is_needed({.dry_multiplier = 0.1f, .dry_penalty_last_n = 0}));
  EXPECT_TRUE(SamplerState::is_needed({.mirostat = 2}));
}

TEST(SamplerState, HoldsOnlyWhatIsAskedFor) {
  const std::vector<int> tokens = {1, 2, 1};
  SamplerState penalties({.repetition_penalty = 2}, 3);
  penalties.sync(tokens, 1);
  EXPECT_EQ(penalties.entries().size(), 2u);
  EXPECT_EQ(penalties.dry(), nullptr);
  EXPECT_EQ(penalties.mirostat(), nullptr);
  SamplerState mirostat({.mirostat = 2}, 3);
  mirostat.sync(tokens, 1);
  EXPECT_TRUE(mirostat.entries().empty());
  EXPECT_NE(mirostat.mirostat(), nullptr);
}

TEST(ApplyPenalties, FollowsTheDefinitions) {
  const SamplingParams params = {
      .repetition_penalty = 2, .presence_penalty = 0.5f, .frequency_penalty = 0.25f};
  SamplerState state(params, 8);
  const std::vector<int> tokens = {0, 1, 1, /*output*/ 2, 2, 1};
  state.sync(tokens, 3);
  std::vector<float> logits = {4, -4, 3, 2};
  penalise_logits(params, state.entries(), logits);
  EXPECT_EQ(logits[0], 2.0f);                     // in the prompt alone
  EXPECT_EQ(logits[1], -8.0f - 0.25f - 0.5f);     // once in the output
  EXPECT_EQ(logits[2], 1.5f - 2 * 0.25f - 0.5f);  // twice
  EXPECT_EQ(logits[3], 2.0f);                     // never
}

// Penalises by the definition: counts the tokens of the window one by one.
std::vector<float> penalised_by_definition(const SamplingParams& params,
                                           const std::vector<int>& tokens,
                                           std::vector<float> logits) {
  const int size = static_cast<int>(tokens.size());
  const int last_n = *params.repeat_last_n < 0 ? size : std::min(*params.repeat_last_n, size);
  std::map<int, int> times;
  for (int i = size - last_n; i < size; ++i) ++times[tokens[i]];
  for (const auto& [token, count] : times) {
    float x = logits[token];
    x = x > 0 ? x / params.repetition_penalty : x * params.repetition_penalty;
    x -= params.frequency_penalty * static_cast<float>(count);
    logits[token] = x - params.presence_penalty;
  }
  return logits;
}

TEST(ApplyPenalties, AWindowCountsItsTokensOfThePromptAndTheOutput) {
  SamplingParams params = {
      .repetition_penalty = 2, .presence_penalty = 0.5f, .frequency_penalty = 0.25f};
  const std::vector<int> tokens = {0, 1, 1, /*output*/ 2, 2, 1};
  const auto penalised = [&](int last_n) {
    params.repeat_last_n = last_n;
    SamplerState state(params, 8);
    state.sync(tokens, 3);
    std::vector<float> logits = {4, -4, 3, 2};
    penalise_logits(params, state.entries(), logits);
    return logits;
  };
  EXPECT_EQ(penalised(4), (std::vector<float>{4, -8 - 0.5f - 0.5f, 1.5f - 0.5f - 0.5f, 2}));
  EXPECT_EQ(penalised(1), (std::vector<float>{4, -8 - 0.25f - 0.5f, 3, 2}));
  const std::vector<float> all = {2 - 0.25f - 0.5f, -8 - 0.75f - 0.5f, 1.5f - 0.5f - 0.5f, 2};
  for (const int last_n : {-1, 6, 7, 1 << 30}) EXPECT_EQ(penalised(last_n), all) << last_n;
}

TEST(ApplyPenalties, AWindowOfNoTokensPenalisesNothingBesideDry) {
  const SamplingParams params = {
      .repetition_penalty = 2, .repeat_last_n = 0, .dry_multiplier = 0.5f};
  SamplerState state(params, 8);
  state.sync(std::vector<int>{0, 1, 0, 1}, 2);
  std::vector<float> logits = {4, -4};
  penalise_logits(params, state.entries(), logits);
  EXPECT_EQ(logits, (std::vector<float>{4, -4}));
}

TEST(SamplerStateDeathTest, EndsAtAHistoryThatOutgrowsItsLimit) {
  SamplerState state({.repetition_penalty = 2}, 2);
  EXPECT_DEATH(state.sync(std::vector<int>{1, 2, 3}, 1), "outgrew");
}

// A history that is appended to, and sometimes truncated or edited, as a sequence does it.
class EditedHistory {
 public:
  EditedHistory(std::mt19937& random, int capacity)
      : random_(random), capacity_(capacity), num_prompt_tokens_(1 + pick(capacity / 4)) {
    while (static_cast<int>(tokens.size()) < num_prompt_tokens_) tokens.push_back(any_token());
  }

  void change() {
    const int size = static_cast<int>(tokens.size());
    switch (pick(8)) {
      case 0:  // truncate
        tokens.resize(num_prompt_tokens_ + pick(size - num_prompt_tokens_ + 1));
        ++epoch;
        break;
      case 1:  // replace
        for (int count = 1 + pick(3); count > 0; --count) tokens[pick(size)] = any_token();
        ++epoch;
        break;
      case 2:  // replace the last token: the epoch alone shows it
        tokens.back() = any_token();
        ++epoch;
        break;
      default:
        for (int count = 1 + pick(pick(4) == 0 ? 40 : 3); count > 0; --count) {
          if (static_cast<int>(tokens.size()) < capacity_) tokens.push_back(any_token());
        }
    }
  }

  int num_prompt_tokens() const { return num_prompt_tokens_; }

  std::vector<int> tokens;
  std::uint64_t epoch = 0;

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  int any_token() { return pick(4) == 0 ? pick(50) : pick(3); }

  std::mt19937& random_;
  int capacity_;
  int num_prompt_tokens_;
};

std::vector<std::uint32_t> penalised_bits(SamplerState& state, const SamplingParams& params,
                                          std::vector<float> logits) {
  penalise_logits(params, state.entries(), logits);
  if (state.dry() != nullptr) state.dry()->apply(params, state.entries(), logits);
  std::vector<std::uint32_t> bits;
  for (const float logit : logits) bits.push_back(std::bit_cast<std::uint32_t>(logit));
  return bits;
}

SamplingParams random_params(std::mt19937& random) {
  SamplingParams params = {.repetition_penalty = 1.0f + 0.1f * static_cast<float>(random() % 4),
                           .presence_penalty = 0.3f * static_cast<float>(random() % 2),
                           .frequency_penalty = 0.7f};
  if (random() % 2 == 0) params.repeat_last_n = static_cast<int>(random() % 60) - 1;
  if (random() % 2 == 0) {
    params.dry_multiplier = 0.8f;
    params.dry_penalty_last_n = random() % 2 == 0 ? -1 : 30;
    params.token_rules =
        std::make_shared<const TokenRules>(TokenRules{.dry_sequence_breakers = {2, 40}});
  }
  return params;
}

TEST(SamplerState, SyncEqualsARebuildAfterEveryEdit) {
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> float32(50), float16(50), bfloat16(50);
  for (int i = 0; i < 50; ++i) {
    float32[i] = normal(random);
    float16[i] = to_float(to_f16(float32[i]));
    bfloat16[i] = to_float(to_bf16(float32[i]));
  }
  constexpr int kNumHistories = 10000;
  for (int history_index = 0; history_index < kNumHistories; ++history_index) {
    const SamplingParams params = random_params(random);
    EditedHistory history(random, 100);
    SamplerState kept(params, 100);
    for (int change = 0; change < 8; ++change) {
      kept.sync(history.tokens, history.num_prompt_tokens(), history.epoch);
      SamplerState rebuilt(params, 100);
      rebuilt.sync(history.tokens, history.num_prompt_tokens());
      for (const std::vector<float>& logits : {float32, float16, bfloat16}) {
        ASSERT_EQ(penalised_bits(kept, params, logits), penalised_bits(rebuilt, params, logits))
            << "history " << history_index << ", change " << change;
      }
      history.change();
    }
  }
}

// The window's penalties have the bits of the definition after every edit, however many tokens
// leave the window at once.
TEST(SamplerState, AWindowFollowsTheHistory) {
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> logits(50);
  for (int round = 0; round < 1000; ++round) {
    EditedHistory history(random, 150);
    SamplingParams params = random_params(random);
    params.repetition_penalty += 0.1f;
    params.repeat_last_n = round % 8 == 0 ? -1 : 1 + static_cast<int>(random() % 40);
    SamplerState state(params, 150);
    for (int change = 0; change < 20; ++change) {
      for (float& logit : logits) logit = normal(random);
      state.sync(history.tokens, history.num_prompt_tokens(), history.epoch);
      std::vector<float> penalised = logits;
      penalise_logits(params, state.entries(), penalised);
      ASSERT_EQ(penalised, penalised_by_definition(params, history.tokens, logits))
          << "round " << round << ", change " << change;
      history.change();
    }
  }
}

// The entries equal counts over the whole history.
TEST(SamplerState, EntriesCountTheHistory) {
  std::mt19937 random(kSeed);
  for (int round = 0; round < 200; ++round) {
    EditedHistory history(random, 200);
    SamplerState state({.repetition_penalty = 2}, 200);
    for (int change = 0; change < 20; ++change) {
      state.sync(history.tokens, history.num_prompt_tokens(), history.epoch);
      std::map<int, int> output_counts;
      for (int i = 0; i < static_cast<int>(history.tokens.size()); ++i)
        output_counts[history.tokens[i]] += i >= history.num_prompt_tokens() ? 1 : 0;
      ASSERT_EQ(state.entries().size(), output_counts.size());
      for (const SeenToken& entry : state.entries()) {
        ASSERT_EQ(output_counts.count(entry.token_id), 1u);
        ASSERT_EQ(output_counts[entry.token_id], entry.output_count);
      }
      history.change();
    }
  }
}

TEST(SamplerState, GreedyOutputsEqualThoseOfARebuild) {
  constexpr int kVocabSize = 60;
  constexpr int kNumTokens = 512;
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal(0, 2);
  // The next token depends on the last one, so that without penalties the output is a cycle.
  std::vector<std::vector<float>> rows(kVocabSize, std::vector<float>(kVocabSize));
  for (std::vector<float>& row : rows) {
    for (float& logit : row) logit = normal(random);
  }
  const SamplingParams params = {.temperature = 0,
                                 .repetition_penalty = 1.05f,
                                 .presence_penalty = 0.1f,
                                 .frequency_penalty = 0.02f,
                                 .dry_multiplier = 0.8f};
  Sampler sampler(kVocabSize);
  SamplerState kept(params, kNumTokens);
  std::vector<int> tokens = {1, 2, 3};
  while (tokens.size() < kNumTokens) {
    const auto next = [&](SamplerState& state) {
      state.sync(tokens, 3);
      return sampler
          .sample({.logits = rows[tokens.back()],
                   .params = &params,
                   .state = &state,
                   .tokens = tokens,
                   .num_prompt_tokens = 3})
          .value();
    };
    SamplerState rebuilt(params, kNumTokens);
    const int token = next(kept);
    ASSERT_EQ(token, next(rebuilt)) << "token " << tokens.size();
    tokens.push_back(token);
  }
  EXPECT_GT(kept.entries().size(), kVocabSize / 2u);
}

}  // namespace
}  // namespace pagoda
