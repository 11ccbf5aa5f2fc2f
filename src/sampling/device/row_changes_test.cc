// Ops change a batch of logits and draw from it. On every backend they give the tokens that the
// Sampler draws from each row alone.
#include "sampling/device/row_changes.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "backend/backend.h"
#include "ops/argmax/argmax.h"
#include "sampling/device/row_draws.h"
#include "sampling/device/row_penalties.h"
#include "sampling/token_rules.h"
#include "tests/support/every_exec.h"

namespace pagoda {
namespace {

constexpr unsigned kSeed = 20261123;
constexpr int kVocabSize = 211;
constexpr int kNumPromptTokens = 6;

struct Row {
  std::vector<float> logits;
  SamplingParams params;
  std::vector<int> tokens;
  std::vector<std::uint32_t> mask;
  bool bans_stop_tokens = false;
  std::unique_ptr<SamplerState> state;

  RowSampling sampling() const {
    static constexpr int kEos[] = {3, 100000};
    return {.logits = logits,
            .params = &params,
            .bans_stop_tokens = bans_stop_tokens,
            .eos_token_ids = kEos,
            .mask = mask,
            .state = state.get(),
            .tokens = tokens,
            .num_prompt_tokens = kNumPromptTokens,
            .seed = 5,
            .position = static_cast<int>(tokens.size())};
  }
};

TokenRules random_rules(std::mt19937& random, const std::vector<int>& tokens) {
  TokenRules rules;
  const auto below = [&](int end) { return static_cast<int>(random() % end); };
  if (below(2) == 0) rules.logit_bias = {{below(9), 3.5f}, {10 + below(200), -4}, {210, -1e9f}};
  std::vector<int> allowed;
  for (int id = below(3); below(2) == 0 && id < kVocabSize; id += 1 + below(4))
    allowed.push_back(id);
  if (!allowed.empty()) rules.allowed_tokens = mask_of(allowed, kVocabSize);
  // The next token can end the first two words but not the third; the first may have a bias too.
  rules.bad_words = {{below(9)}, {tokens.back(), below(kVocabSize)}, {200, 201, below(kVocabSize)}};
  return rules;
}

Row random_row(std::mt19937& random) {
  std::normal_distribution<float> normal(0, 2);
  const auto below = [&](int end) { return static_cast<int>(random() % end); };
  Row row;
  for (int i = 0; i < kVocabSize; ++i) row.logits.push_back(normal(random));
  for (int i = kNumPromptTokens + below(20); i >= 0; --i) row.tokens.push_back(below(40));
  row.params = {.temperature = below(3) == 0 ? 0.0f : 0.9f, .top_p = below(2) == 0 ? 1.0f : 0.8f};
  if (below(2) == 0) row.params.repetition_penalty = 1.4f;
  if (below(3) == 0) row.params.frequency_penalty = -0.7f;
  if (below(3) == 0) row.params.presence_penalty = 0.9f;
  row.params.stop_token_ids = {below(kVocabSize)};
  row.bans_stop_tokens = below(3) == 0;
  if (below(3) == 0)
    row.params.token_rules = std::make_shared<const TokenRules>(random_rules(random, row.tokens));
  for (int word = 0; below(3) == 0 && word < (kVocabSize + 31) / 32; ++word)
    row.mask.push_back(static_cast<std::uint32_t>(random()));
  row.mask.resize(row.mask.empty() ? 0 : (kVocabSize + 31) / 32, ~0u);
  if (penalises(row.params)) {
    row.state = std::make_unique<SamplerState>(row.params, 64);
    row.state->sync(row.tokens, kNumPromptTokens);
  }
  return row;
}

std::vector<std::int32_t> draw(Exec& exec, std::span<const Row> rows) {
  RowChanges changes(kVocabSize);
  RowPenalties penalties(kVocabSize);
  RowDraws draws;
  std::vector<float> logits;
  for (const Row& row : rows) {
    const RowSampling sampling = row.sampling();
    EXPECT_TRUE(RowChanges::cover(row.params) && RowDraws::cover(row.params));
    changes.add(sampling);
    penalties.add(row.params, {.sequence = logits.size(),
                               .tokens = row.tokens,
                               .num_prompt_tokens = kNumPromptTokens,
                               .num_tokens = static_cast<int>(row.tokens.size())});
    draws.add(row.params, {.seed = sampling.seed, .position = sampling.position});
    logits.insert(logits.end(), row.logits.begin(), row.logits.end());
  }
  const auto n = static_cast<std::int64_t>(rows.size());
  EXPECT_TRUE(penalties.prepare(exec).ok());
  const Tensor changed = changes.apply(exec, exec.upload<float>(logits, {n, kVocabSize}));
  const Tensor drawn = draws.draw(exec, penalties.apply(exec, changed));
  return compute_values<std::int32_t>(exec, drawn);
}

TEST(RowChanges, AMixedBatchIsWhatTheSamplerDrawsOfEachRow) {
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  std::vector<Row> rows;
  for (int i = 0; i < 200; ++i) rows.push_back(random_row(random));
  for (const auto& exec : every_exec(/*num_threads=*/1)) {
    const std::vector<std::int32_t> together = draw(*exec, rows);
    Sampler sampler(kVocabSize);
    int num_alone = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      SCOPED_TRACE(::testing::Message() << backend_name(exec->backend()) << ", row " << i);
      EXPECT_EQ(draw(*exec, std::span(rows).subspan(i, 1))[0], together[i]);
      const Result<int> token = sampler.sample(rows[i].sampling());
      EXPECT_EQ(status_of_drawn(together[i], kVocabSize).message(), token.status().message());
      if (token.ok()) {
        EXPECT_EQ(together[i], *token);
      }
      num_alone += token.ok();
    }
    EXPECT_GT(num_alone, 150);
  }
}

TEST(RowChanges, NothingToChangeCostsNothing) {
  const auto exec = make_exec({.backend = Backend::kReference, .num_threads = 1}).value();
  RowChanges changes(4);
  const SamplingParams params = {.temperature = 0.5f};
  changes.add({.params = &params});
  const Tensor logits = exec->upload<float>(std::vector<float>{1, 2, 3, 4}, {1, 4});
  EXPECT_EQ(changes.apply(*exec, logits).buffer().get(), logits.buffer().get());
}

TEST(RowChanges, SaysWhatDependsOnTheOutput) {
  const auto with_rules = [](TokenRules rules) {
    return SamplingParams{.token_rules = std::make_shared<const TokenRules>(std::move(rules))};
  };
  EXPECT_FALSE(RowChanges::look_back({}));
  EXPECT_FALSE(RowChanges::look_back({.repetition_penalty = 1.1f}));
  EXPECT_FALSE(RowChanges::look_back(with_rules({.logit_bias = {{1, 2}}, .bad_words = {{3}}})));
  EXPECT_TRUE(RowChanges::look_back(with_rules({.bad_words = {{3}, {4, 5}}})));
  EXPECT_FALSE(RowChanges::cover({.dry_multiplier = 1}));
}

}  // namespace
}  // namespace pagoda
