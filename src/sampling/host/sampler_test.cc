#include "sampling/host/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

std::vector<float> normal_row(int n, float deviation, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> row(n);
  for (float& x : row) x = normal(generator);
  return row;
}

int sample(const std::vector<float>& logits, const SamplingParams& params, int position = 0,
           std::uint64_t seed = 1) {
  Sampler sampler(static_cast<int>(logits.size()));
  const Result<int> token =
      sampler.sample({.logits = logits, .params = &params, .seed = seed, .position = position});
  EXPECT_TRUE(token.ok()) << token.status().message();
  return token.ok() ? *token : -1;
}

// Returns how often each token is drawn over `num_draws` positions.
std::map<int, int> draw_counts(const std::vector<float>& logits, const SamplingParams& params,
                               int num_draws) {
  Sampler sampler(static_cast<int>(logits.size()));
  std::map<int, int> counts;
  for (int position = 0; position < num_draws; ++position) {
    const Result<int> token =
        sampler.sample({.logits = logits, .params = &params, .seed = 3, .position = position});
    EXPECT_TRUE(token.ok());
    ++counts[*token];
  }
  return counts;
}

std::set<int> drawn(const std::vector<float>& logits, const SamplingParams& params) {
  std::set<int> ids;
  for (const auto& [id, count] : draw_counts(logits, params, 2000)) ids.insert(id);
  return ids;
}

TEST(GreedySampler, TakesTheLargestLogitAndTheLowestIdAmongEquals) {
  const SamplingParams greedy = {.temperature = 0};
  EXPECT_EQ(sample({1, 3, 2}, greedy), 1);
  EXPECT_EQ(sample({3, 1, 3, 3}, greedy), 0);
  EXPECT_EQ(sample({kMinusInfinity, -5, kMinusInfinity}, greedy), 1);
  std::vector<float> row(1000, -1.0f);
  row[777] = row[778] = row[999] = 4;
  EXPECT_EQ(sample(row, greedy), 777);
  EXPECT_EQ(sample(row, {.temperature = 0.9e-5f}), 777);
}

TEST(GreedySampler, IgnoresFiltersAndSeeds) {
  const std::vector<float> row = normal_row(500, 1, 2);
  const int best = static_cast<int>(std::max_element(row.begin(), row.end()) - row.begin());
  for (int position = 0; position < 20; ++position) {
    EXPECT_EQ(sample(row, {.temperature = 0, .top_k = 10, .top_p = 0.5f, .min_p = 0.1f}, position),
              best);
  }
}

TEST(Sampler, TemperaturesFarOutKeepTheirMeaning) {
  std::vector<float> row = normal_row(300, 3, 4);
  const int best = static_cast<int>(std::max_element(row.begin(), row.end()) - row.begin());
  for (int position = 0; position < 50; ++position) {
    EXPECT_EQ(sample(row, {.temperature = 1.1e-5f}, position), best);
  }
  // The temperature is so high that all tokens are equally likely.
  const std::map<int, int> counts = draw_counts({100, -100, 0, 50}, {.temperature = 3e38f}, 4000);
  EXPECT_EQ(counts.size(), 4u);
  for (const auto& [id, count] : counts) EXPECT_NEAR(count, 1000, 5 * std::sqrt(750));
  // Logits are as far apart as float32 allows.
  EXPECT_EQ(sample({-3e38f, 3e38f, kMinusInfinity}, {}), 1);
}

TEST(Sampler, TopKKeepsTies) {
  const std::vector<float> row = {1, 5, 4, 4, 4, 0, kMinusInfinity};
  EXPECT_THAT(drawn(row, {.temperature = 2, .top_k = 1}), ElementsAre(1));
  EXPECT_THAT(drawn(row, {.temperature = 2, .top_k = 2}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(drawn(row, {.temperature = 2, .top_k = 4}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(drawn(row, {.temperature = 3, .top_k = 5}), ElementsAre(0, 1, 2, 3, 4));
  // Top-k of all tokens, of more than there are, and off.
  for (const int top_k : {7, 100, 0, -1}) {
    EXPECT_THAT(drawn(row, {.temperature = 3, .top_k = top_k}), ElementsAre(0, 1, 2, 3, 4, 5));
  }
}

TEST(Sampler, TopPKeepsTheTokenThatCrosses) {
  // Probabilities 1/2, 1/4, 1/8, 1/8.
  const float ln2 = std::log(2.0f);
  const std::vector<float> row = {0, -2 * ln2, -ln2, -2 * ln2};
  EXPECT_THAT(drawn(row, {.top_p = 1e-30f}), ElementsAre(0));
  EXPECT_THAT(drawn(row, {.top_p = 0.49f}), ElementsAre(0));
  EXPECT_THAT(drawn(row, {.top_p = 0.51f}), ElementsAre(0, 2));
  EXPECT_THAT(drawn(row, {.top_p = 0.74f}), ElementsAre(0, 2));
  EXPECT_THAT(drawn(row, {.top_p = 0.76f}), ElementsAre(0, 1, 2));  // the lower id of equals
  EXPECT_THAT(drawn(row, {.top_p = 0.88f}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(drawn(row, {.top_p = 0.99999994f}), ElementsAre(0, 1, 2, 3));
  // Top-p takes its share of the weight that top-k leaves: 2/3 and 1/3.
  EXPECT_THAT(drawn(row, {.top_k = 2, .top_p = 0.66f}), ElementsAre(0));
  EXPECT_THAT(drawn(row, {.top_k = 2, .top_p = 0.67f}), ElementsAre(0, 2));
}

TEST(Sampler, MinPIsAShareOfTheLikeliest) {
  const float ln2 = std::log(2.0f);
  const std::vector<float> row = {0, -2 * ln2, -ln2, -3 * ln2};
  EXPECT_THAT(drawn(row, {.min_p = 1}), ElementsAre(0));
  EXPECT_THAT(drawn(row, {.min_p = 0.51f}), ElementsAre(0));
  EXPECT_THAT(drawn(row, {.min_p = 0.49f}), ElementsAre(0, 2));
  EXPECT_THAT(drawn(row, {.min_p = 0.2f}), ElementsAre(0, 1, 2));
  // Min-p acts after the temperature, which at 2 halves the distances of logits.
  EXPECT_THAT(drawn(row, {.temperature = 2, .min_p = 0.49f}), ElementsAre(0, 1, 2));
}

TEST(Sampler, BansStopTokensBeforeTheMinimum) {
  const std::vector<float> row = {1, 9, 8, 7};
  const SamplingParams params = {.temperature = 0, .min_tokens = 1, .stop_token_ids = {2}};
  const std::vector<int> eos = {1, 5000};  // 5000 is outside the vocabulary
  Sampler sampler(4);
  const auto take = [&](bool bans) {
    return sampler
        .sample({.logits = row, .params = &params, .bans_stop_tokens = bans, .eos_token_ids = eos})
        .value();
  };
  EXPECT_EQ(take(true), 3);
  EXPECT_EQ(take(false), 1);
}

TEST(Sampler, AppliesPenaltiesBeforeTheChoice) {
  const std::vector<float> row = {4, 3.5f, -1, 0};
  const SamplingParams params = {.temperature = 0, .repetition_penalty = 2};
  SamplerState state(params, 2);
  state.sync(std::vector<int>{0}, 1);
  const Result<int> token = Sampler(4).sample({.logits = row, .params = &params, .state = &state});
  EXPECT_EQ(*token, 1);
}

TEST(Sampler, ARowThatIsNoDistributionFailsAlone) {
  const SamplingParams params;
  Sampler sampler(3);
  const auto error = [&](const std::vector<float>& row) {
    return sampler.sample({.logits = row, .params = &params}).status().message();
  };
  EXPECT_THAT(error({1, std::nanf(""), 2}), HasSubstr("got NaN or +inf"));
  EXPECT_THAT(error({1, -kMinusInfinity, 2}), HasSubstr("got NaN or +inf"));
  EXPECT_THAT(error({kMinusInfinity, kMinusInfinity, kMinusInfinity}),
              HasSubstr("got -inf for all 3"));
  EXPECT_EQ(error({1, 2, 3}), "");
}

TEST(Sampler, ABanOfEveryTokenIsAnError) {
  const SamplingParams params = {.stop_token_ids = {0, 1}};
  const std::vector<float> row = {1, 2};
  const auto result =
      Sampler(2).sample({.logits = row, .params = &params, .bans_stop_tokens = true});
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
}

TEST(Sampler, SeedsReproduceAndSamplesDiffer) {
  const std::vector<float> row = normal_row(2000, 0.5f, 8);
  const SamplingParams params = {.top_p = 0.9f};
  const auto run = [&](std::uint64_t seed, int sample_index) {
    Sampler sampler(2000);
    std::vector<int> ids;
    for (int position = 0; position < 20; ++position) {
      ids.push_back(sampler
                        .sample({.logits = row,
                                 .params = &params,
                                 .seed = seed,
                                 .sample_index = sample_index,
                                 .position = position})
                        .value());
    }
    return ids;
  };
  EXPECT_EQ(run(1, 0), run(1, 0));
  EXPECT_NE(run(1, 0), run(2, 0));
  EXPECT_NE(run(1, 0), run(1, 1));
}

TEST(Sampler, ARowNeverDependsOnTheRowsBeforeIt) {
  const int n = 3001;
  const std::vector<SamplingParams> kinds = {{.temperature = 0},
                                             {},
                                             {.top_k = 40},
                                             {.temperature = 0.7f, .top_p = 0.9f},
                                             {.top_k = 2000, .top_p = 0.95f, .min_p = 0.001f}};
  Sampler shared(n);
  for (unsigned seed = 0; seed < 40; ++seed) {
    const std::vector<float> row = normal_row(n, 1.0f + seed % 3, seed);
    const RowSampling request = {.logits = row,
                                 .params = &kinds[seed % kinds.size()],
                                 .seed = seed,
                                 .position = static_cast<int>(seed)};
    const Result<int> alone = Sampler(n).sample(request);
    const Result<int> after_others = shared.sample(request);
    ASSERT_EQ(*alone, *after_others);
  }
}

// Pearson's chi-square of 100,000 draws. The bounds are 1 - 1e-6 quantiles for the degrees of
// freedom beside them.
TEST(Sampler, DrawsFollowTheDistribution) {
  const std::vector<float> row = {0.3f, -1.2f, 2.0f, kMinusInfinity, 0.9f, -0.4f};
  const auto chi_square = [&](const SamplingParams& params, const std::set<int>& kept) {
    double total = 0;
    for (const int id : kept) total += std::exp(row[id] / params.temperature);
    constexpr int kNumDraws = 100000;
    std::map<int, int> counts = draw_counts(row, params, kNumDraws);
    double statistic = 0;
    for (const int id : kept) {
      const double expected = kNumDraws * std::exp(row[id] / params.temperature) / total;
      statistic += (counts[id] - expected) * (counts[id] - expected) / expected;
      counts.erase(id);
    }
    EXPECT_TRUE(counts.empty()) << "drew a token that is filtered";
    return statistic;
  };
  EXPECT_LT(chi_square({}, {0, 1, 2, 4, 5}), 33.4);                     // 4 degrees
  EXPECT_LT(chi_square({.temperature = 1.7f}, {0, 1, 2, 4, 5}), 33.4);  // 4
  EXPECT_LT(chi_square({.top_k = 3}, {0, 2, 4}), 27.6);                 // 2
  EXPECT_LT(chi_square({.temperature = 0.8f, .top_p = 0.95f}, {0, 2, 4}),
            27.6);                                              // 2: probabilities .694 .176 .083
  EXPECT_LT(chi_square({.min_p = 0.05f}, {0, 2, 4, 5}), 30.7);  // 3
}

}  // namespace
}  // namespace pagoda
