// Compares typical-p and XTC with sorting in double, and dynamic temperature with its formula.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "sampling/host/dynamic_temperature.h"
#include "sampling/host/typical.h"
#include "sampling/host/xtc.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;

constexpr unsigned kSeed = 20261120;
// Decisions that are closer than this to their threshold are not compared: float32 may differ.
constexpr double kMargin = 1e-5;

struct Row {
  std::vector<int> ids;
  std::vector<float> logits;
  std::vector<float> weights;
  float temperature = 1;

  explicit Row(std::vector<float> row_logits, float row_temperature = 1)
      : ids(row_logits.size()), logits(std::move(row_logits)), temperature(row_temperature) {
    std::iota(ids.begin(), ids.end(), 0);
    const float max = *std::max_element(logits.begin(), logits.end());
    for (const float logit : logits)
      weights.push_back(static_cast<float>(std::exp((double{logit} - max) / temperature)));
  }

  Candidates candidates() { return {ids, logits, weights}; }
  std::vector<double> probabilities() const {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<double> shares(weights.begin(), weights.end());
    for (double& share : shares) share /= total;
    return shares;
  }
};

Row random_row(std::mt19937& random) {
  const int sizes[] = {1, 2, 3, 17, 200, 3000};
  std::normal_distribution<float> normal(0, 0.25f + 0.5f * static_cast<float>(random() % 8));
  std::vector<float> logits(sizes[random() % 6]);
  const bool has_ties = random() % 2 == 0;
  for (float& logit : logits) {
    logit = normal(random);
    if (has_ties) logit = std::round(logit * 8) / 8;
  }
  return Row(std::move(logits), random() % 2 == 0 ? 1.0f : 0.7f);
}

std::vector<int> typical_of(Row row, float typical_p) {
  TypicalFilter filter(row.ids.size());
  const std::size_t kept = filter.keep(row.candidates(), row.temperature, typical_p);
  return {row.ids.begin(), row.ids.begin() + static_cast<std::ptrdiff_t>(kept)};
}

// Returns the kept ids, or nothing if a decision is too close to its threshold.
std::optional<std::vector<int>> typical_by_definition(const Row& row, double typical_p) {
  const std::vector<double> p = row.probabilities();
  double entropy = 0;
  for (const double share : p) {
    if (share > 0) entropy -= share * std::log(share);
  }
  std::vector<int> order(row.ids);
  const auto distance = [&](int id) { return std::abs(-std::log(p[id]) - entropy); };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return distance(a) < distance(b); });
  double reached = 0;
  std::size_t size = 0;
  while (size < order.size() && reached < typical_p) {
    reached += p[order[size++]];
    if (std::abs(reached - typical_p) < kMargin) return {};
  }
  // The first dropped token may be as far from the entropy as the last kept one: float32 may swap
  // them.
  const double last = distance(order[size - 1]);
  if (size < order.size() && distance(order[size]) - last < kMargin &&
      row.logits[order[size]] != row.logits[order[size - 1]])
    return {};
  order.resize(size);
  std::sort(order.begin(), order.end());
  return order;
}

TEST(Typical, KeepsTheExpectedSurpriseFirst) {
  // Probabilities 0.5, 0.25, 0.125, 0.125: entropy 1.75 bits, surprises 1, 2, 3, 3.
  const float ln2 = std::log(2.0f);
  const Row row({0, -ln2, -2 * ln2, -2 * ln2});
  EXPECT_THAT(typical_of(row, 0.1f), ElementsAre(1));
  EXPECT_THAT(typical_of(row, 0.26f), ElementsAre(0, 1));
  EXPECT_THAT(typical_of(row, 0.76f), ElementsAre(0, 1, 2));  // of equals the lower id is kept
  EXPECT_THAT(typical_of(row, 0.9f), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(typical_of(Row({3}), 0.5f), ElementsAre(0));
}

TEST(Typical, EverySetIsTheDefinitions) {
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  int num_compared = 0;
  constexpr int kNumRows = 3000;
  for (int i = 0; i < kNumRows; ++i) {
    const Row row = random_row(random);
    const float typical_p = 0.05f + 0.1f * static_cast<float>(random() % 10);
    const auto expected = typical_by_definition(row, typical_p);
    if (!expected) continue;
    ++num_compared;
    ASSERT_EQ(typical_of(row, typical_p), *expected) << "row " << i;
  }
  EXPECT_GT(num_compared, kNumRows * 9 / 10);
}

std::vector<int> left_by_xtc(Row row, float threshold) {
  const std::size_t kept = exclude_top_choices(row.candidates(), threshold);
  return {row.ids.begin(), row.ids.begin() + static_cast<std::ptrdiff_t>(kept)};
}

TEST(Xtc, KeepsTheLeastLikelyOfTheTopChoices) {
  // Probabilities 0.4, 0.1, 0.3, 0.2.
  const Row row({std::log(0.4f), std::log(0.1f), std::log(0.3f), std::log(0.2f)});
  EXPECT_THAT(left_by_xtc(row, 0.05f), ElementsAre(1));
  EXPECT_THAT(left_by_xtc(row, 0.15f), ElementsAre(1, 3));
  EXPECT_THAT(left_by_xtc(row, 0.25f), ElementsAre(1, 2, 3));
  EXPECT_THAT(left_by_xtc(row, 0.35f), ElementsAre(0, 1, 2, 3));  // a single top choice is kept
  EXPECT_THAT(left_by_xtc(row, 0.6f), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(left_by_xtc(Row({1, 1, 1, 1}), 0.2f), ElementsAre(3));
}

TEST(Xtc, EverySetIsTheDefinitions) {
  std::mt19937 random(kSeed);
  int num_compared = 0;
  constexpr int kNumRows = 3000;
  for (int i = 0; i < kNumRows; ++i) {
    const Row row = random_row(random);
    const double threshold = 0.001 + 0.05 * static_cast<double>(random() % 8);
    const std::vector<double> p = row.probabilities();
    const bool is_clear = std::none_of(p.begin(), p.end(), [&](double share) {
      return std::abs(share - static_cast<float>(threshold)) < kMargin * 1e-2;
    });
    if (!is_clear) continue;
    ++num_compared;
    // In the order of probability, the lower id first among equals, all top choices but the last
    // go.
    std::vector<int> order(row.ids);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return p[a] > p[b]; });
    std::size_t num_top = 0;
    while (num_top < order.size() && p[order[num_top]] >= threshold) ++num_top;
    if (num_top > 1) order.erase(order.begin(), order.begin() + static_cast<long>(num_top) - 1);
    std::sort(order.begin(), order.end());
    ASSERT_EQ(left_by_xtc(row, static_cast<float>(threshold)), order) << "row " << i;
  }
  EXPECT_GT(num_compared, kNumRows * 8 / 10);
}

float dynamic_temperature_of(const Row& row, const SamplingParams& params) {
  return dynamic_temperature(params, row.logits,
                             *std::max_element(row.logits.begin(), row.logits.end()), row.weights,
                             std::accumulate(row.weights.begin(), row.weights.end(), 0.0));
}

TEST(DynamicTemperature, GoesFromLeastToMostWithTheEntropy) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  const SamplingParams params = {.temperature = 1, .dynatemp_range = 0.5f, .dynatemp_exponent = 1};
  EXPECT_FLOAT_EQ(dynamic_temperature_of(Row({2, 2, 2, 2}), params), 1.5f);
  EXPECT_NEAR(dynamic_temperature_of(Row({0, -80, -80, -80}), params), 0.5f, 1e-6);
  // A banned token does not count: the other two are equal, which is the largest entropy.
  EXPECT_FLOAT_EQ(dynamic_temperature_of(Row({2, kMinusInfinity, 2}), params), 1.5f);
  EXPECT_FLOAT_EQ(dynamic_temperature_of(Row({2, kMinusInfinity}), params), 1.0f);
  // The temperature is never below 0.
  EXPECT_NEAR(dynamic_temperature_of(Row({0, -80}), {.temperature = 1, .dynatemp_range = 5}), 0,
              1e-6);
}

TEST(DynamicTemperature, EveryOneIsTheFormulas) {
  std::mt19937 random(kSeed);
  for (int i = 0; i < 1000; ++i) {
    Row row = random_row(random);
    row = Row(row.logits);
    if (row.ids.size() < 2) continue;
    const SamplingParams params = {.temperature = 0.8f,
                                   .dynatemp_range = 0.6f,
                                   .dynatemp_exponent = 0.5f * static_cast<float>(random() % 5)};
    double entropy = 0;
    for (const double share : row.probabilities()) {
      if (share > 0) entropy -= share * std::log(share);
    }
    const double most = std::log(static_cast<double>(row.ids.size()));
    const double expected = 0.2 + 1.2 * std::pow(entropy / most, params.dynatemp_exponent);
    ASSERT_NEAR(dynamic_temperature_of(row, params), expected, 1e-5) << "row " << i;
  }
}

}  // namespace
}  // namespace pagoda
