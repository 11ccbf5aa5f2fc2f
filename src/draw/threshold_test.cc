#include "draw/threshold.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "draw/token_weight.h"
#include "tests/support/property_seed.h"

namespace pagoda::cpu {
namespace {

// A finder with memory of its own.
class OwnedFinder {
 public:
  explicit OwnedFinder(std::size_t max_values) : keys_(max_values), indices_(max_values) {}
  ThresholdFinder* operator->() { return &finder_; }

 private:
  std::vector<std::uint32_t> keys_, indices_;
  ThresholdFinder finder_{keys_, indices_};
};

TEST(OrderedBits, OrderAsFloatsDo) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> ascending = {-kInfinity, -3e38f, -1, -1e-40f, 0,
                                        1e-40f,     0.5f,   1,  3e38f,   kInfinity};
  for (std::size_t i = 1; i < ascending.size(); ++i) {
    EXPECT_LT(ordered_bits(ascending[i - 1]), ordered_bits(ascending[i]));
  }
  EXPECT_EQ(ordered_bits(-0.0f), ordered_bits(0.0f));
  for (const float x : ascending) EXPECT_EQ(Threshold{.key = ordered_bits(x)}.value(), x);
}

TEST(ThresholdFinder, KeepsAllWhereTheTargetIsOutOfReach) {
  const std::vector<float> values = {1, 2, 2};
  const std::vector<float> weights = {0.25f, 0.5f, 0.5f};
  OwnedFinder finder(values.size());
  const Threshold by_weight = finder->by_weight(values, weights, whole_weight(1) * 3 / 2);
  EXPECT_EQ(by_weight.key, ordered_bits(1));
  EXPECT_EQ(by_weight.num_ties, 1);
  const Threshold by_count = finder->by_count(values, 5);
  EXPECT_EQ(by_count.key, ordered_bits(1));
  EXPECT_EQ(by_count.num_ties, 1);
}

TEST(ThresholdFinder, TakesWeightlessTiesTogether) {
  const std::vector<float> values = {-100, -100, -100};
  const std::vector<float> weights = {0, 0, 0};
  EXPECT_EQ(OwnedFinder(3)->by_weight(values, weights, 1).num_ties, 3);
}

// The thresholds are compared with those that a sort finds.
RC_GTEST_PROP(ThresholdFinderProperty, AgreesWithASort, ()) {
  const auto quarters = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(
      rc::gen::oneOf(rc::gen::inRange(-8, 8), rc::gen::inRange(-4000, 4000))));
  std::vector<float> values;
  std::vector<float> weights;
  for (const int q : quarters) {
    values.push_back(0.25f * static_cast<float>(q));
    weights.push_back(static_cast<float>(q + 4001) *
                      0x1p-13f);  // positive, and ascending with the values
  }
  std::vector<int> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return values[a] > values[b]; });
  const auto expect_prefix = [&](const Threshold& threshold, std::size_t size) {
    const float last = values[order[size - 1]];
    RC_ASSERT(threshold.key == ordered_bits(last));
    const auto first_tie =
        std::find_if(order.begin(), order.end(), [&](int i) { return values[i] == last; });
    RC_ASSERT(threshold.num_ties == static_cast<int>(order.begin() + size - first_tie));
  };
  OwnedFinder finder(values.size());
  const auto count = *rc::gen::inRange<std::size_t>(1, values.size() + 1);
  expect_prefix(finder->by_count(values, count), count);
  // A prefix is found by its own weight; a weight one larger needs one more value.
  std::int64_t weight = 0;
  for (std::size_t i = 0; i < count; ++i) weight += whole_weight(weights[order[i]]);
  expect_prefix(finder->by_weight(values, weights, weight), count);
  if (count < values.size())
    expect_prefix(finder->by_weight(values, weights, weight + 1), count + 1);
}

}  // namespace
}  // namespace pagoda::cpu
