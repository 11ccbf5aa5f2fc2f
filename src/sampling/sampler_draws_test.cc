// A million draws of each method follow its distribution: Pearson's chi-square at fixed seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "sampling/sampler.h"
#include "sampling/token_rules.h"

namespace pagoda {
namespace {

constexpr int kNumDraws = 1000000;
constexpr int kVocabSize = 40;
constexpr unsigned kSeed = 20261120;

std::vector<float> test_row() {
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal(0, 1.2f);
  std::vector<float> row(kVocabSize);
  for (float& logit : row) logit = normal(random);
  row[7] = -std::numeric_limits<float>::infinity();
  return row;
}

// exp(logit / temperature), of all tokens together 1.
std::vector<double> softmax(const std::vector<float>& row, double temperature = 1) {
  std::vector<double> p;
  for (const float logit : row) p.push_back(std::exp(logit / temperature));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& share : p) share /= total;
  return p;
}

// `p` with what `drop` names taken out.
template <typename Drop>
std::vector<double> without(std::vector<double> p, const Drop& drop) {
  for (int id = 0; id < kVocabSize; ++id) {
    if (drop(id)) p[id] = 0;
  }
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& share : p) share /= total;
  return p;
}

std::vector<int> draw_counts(const std::vector<float>& row, const SamplingParams& params) {
  Sampler sampler(kVocabSize);
  const std::vector<int> tokens = {0};
  std::vector<int> counts(kVocabSize, 0);
  for (int position = 0; position < kNumDraws; ++position) {
    const Result<int> token = sampler.sample({.logits = row,
                                              .params = &params,
                                              .tokens = tokens,
                                              .num_prompt_tokens = 1,
                                              .seed = 11,
                                              .position = position});
    ++counts[*token];
  }
  return counts;
}

// The statistic is below its 1 - 1e-6 quantile, by Wilson and Hilferty's approximation ("The
// distribution of chi-square", 1931).
void expect_distribution(const std::vector<int>& counts, const std::vector<double>& p) {
  double statistic = 0;
  int degrees = -1;
  for (int id = 0; id < kVocabSize; ++id) {
    const double expected = kNumDraws * p[id];
    if (expected == 0) {
      ASSERT_EQ(counts[id], 0) << "token " << id << " is filtered";
      continue;
    }
    statistic += (counts[id] - expected) * (counts[id] - expected) / expected;
    ++degrees;
  }
  ASSERT_GT(degrees, 0);
  constexpr double kNormalQuantile = 4.753;
  const double spread = 2.0 / (9.0 * degrees);
  EXPECT_LT(statistic, degrees * std::pow(1 - spread + kNormalQuantile * std::sqrt(spread), 3))
      << degrees << " degrees of freedom";
}

TEST(SamplerDraws, OfTypicalTokens) {
  const std::vector<float> row = test_row();
  const std::vector<double> p = softmax(row);
  double entropy = 0;
  for (const double share : p) entropy -= share > 0 ? share * std::log(share) : 0;
  std::vector<int> order;
  for (int id = 0; id < kVocabSize; ++id) {
    if (p[id] > 0) order.push_back(id);
  }
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::abs(std::log(p[a]) + entropy) < std::abs(std::log(p[b]) + entropy);
  });
  double reached = 0;
  std::vector<bool> kept(kVocabSize, false);
  for (std::size_t i = 0; reached < 0.3; ++i) {
    reached += p[order[i]];
    kept[order[i]] = true;
  }
  EXPECT_FALSE(kept[std::max_element(p.begin(), p.end()) - p.begin()])
      << "a row on which typical-p is not top-p";
  expect_distribution(draw_counts(row, {.typical_p = 0.3f}),
                      without(p, [&](int id) { return !kept[id]; }));
}

TEST(SamplerDraws, WithoutTopChoicesAsOftenAsTheCoinSays) {
  const std::vector<float> row = test_row();
  const std::vector<double> p = softmax(row);
  double least = 1;
  for (const double share : p) {
    if (share >= 0.05) least = std::min(least, share);
  }
  const std::vector<double> excluded = without(p, [&](int id) { return p[id] > least; });
  std::vector<double> mixed(kVocabSize);
  for (int id = 0; id < kVocabSize; ++id) mixed[id] = 0.7 * p[id] + 0.3 * excluded[id];
  expect_distribution(draw_counts(row, {.xtc_probability = 0.3f, .xtc_threshold = 0.05f}), mixed);
  expect_distribution(draw_counts(row, {.xtc_probability = 1, .xtc_threshold = 0.05f}), excluded);
}

TEST(SamplerDraws, AtADynamicTemperature) {
  const std::vector<float> row = test_row();
  double entropy = 0;
  for (const double share : softmax(row)) entropy -= share > 0 ? share * std::log(share) : 0;
  const double temperature = 0.5 + std::pow(entropy / std::log(kVocabSize - 1), 1.5);
  expect_distribution(
      draw_counts(row, {.temperature = 1, .dynatemp_range = 0.5f, .dynatemp_exponent = 1.5f}),
      softmax(row, temperature));
}

TEST(SamplerDraws, WithBiasesAndBans) {
  std::vector<float> row = test_row();
  const std::vector<int> allowed = {1, 2, 3, 4, 5, 6, 9, 30};
  const TokenRules rules = {.logit_bias = {{3, 1.5f}, {4, -2}},
                            .allowed_tokens = mask_of(allowed, kVocabSize),
                            .bad_words = {{5}, {1, 2}}};
  const std::vector<int> counts =
      draw_counts(row, {.token_rules = std::make_shared<const TokenRules>(rules)});
  row[3] += 1.5f;
  row[4] -= 2;
  expect_distribution(counts, without(softmax(row), [&](int id) {
                        return id == 5 || std::count(allowed.begin(), allowed.end(), id) == 0;
                      }));
}

TEST(SamplerDraws, OfMinPTopKAndTopP) {
  const std::vector<float> row = test_row();
  const std::vector<double> p = softmax(row);
  std::vector<double> sorted = p;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  expect_distribution(draw_counts(row, {.top_k = 12}),
                      without(p, [&](int id) { return p[id] < sorted[11]; }));
  expect_distribution(draw_counts(row, {.min_p = 0.1f}),
                      without(p, [&](int id) { return p[id] < 0.1 * sorted[0]; }));
  double reached = 0;
  int size = 0;
  while (reached < 0.8) reached += sorted[size++];
  expect_distribution(draw_counts(row, {.top_p = 0.8f}),
                      without(p, [&](int id) { return p[id] < sorted[size - 1]; }));
}

// mu is held where it is, by an eta of 0.
TEST(SamplerDraws, OfMirostat) {
  const std::vector<float> row = test_row();
  const std::vector<double> p = softmax(row);
  const SamplingParams params = {.mirostat = 2, .mirostat_tau = 2.25f, .mirostat_eta = 0};
  Sampler sampler(kVocabSize);
  SamplerState state(params, 4);
  const std::vector<int> tokens = {0};
  std::vector<int> counts(kVocabSize, 0);
  for (int position = 0; position < kNumDraws; ++position) {
    state.sync(tokens, 1);
    ++counts[sampler
                 .sample({.logits = row,
                          .params = &params,
                          .state = &state,
                          .seed = 11,
                          .position = position})
                 .value()];
  }
  expect_distribution(counts, without(p, [&](int id) { return -std::log2(p[id]) > 4.5; }));
}

}  // namespace
}  // namespace pagoda
