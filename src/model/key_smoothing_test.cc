#include "model/key_smoothing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <limits>
#include <numbers>
#include <random>

namespace pagoda {
namespace {

constexpr std::uint32_t kSeed = 20261125;
constexpr RopeStyle kStyles[] = {RopeStyle::kHalves, RopeStyle::kAdjacent};

std::vector<float> random_weights(std::mt19937& random, std::size_t count) {
  std::uniform_real_distribution<float> weight(-2, 2);
  std::vector<float> weights(count);
  for (float& each : weights) each = weight(random);
  return weights;
}

std::size_t partner_of(std::size_t i, std::size_t head_dim, RopeStyle style) {
  if (style == RopeStyle::kAdjacent) return i ^ 1;
  return (i + head_dim / 2) % head_dim;
}

TEST(KeySmoothing, BalancedNormsKeepEveryProductAndShareTheirSize) {
  std::cout << "seed " << kSeed << "\n";
  std::mt19937 random(kSeed);
  constexpr std::size_t kHeadDim = 16;
  for (const RopeStyle style : kStyles) {
    const std::vector<float> q = random_weights(random, kHeadDim);
    std::vector<float> k = random_weights(random, kHeadDim);
    k[3] *= 100;
    k[partner_of(3, kHeadDim, style)] *= 100;
    std::vector<float> balanced_q = q, balanced_k = k;
    balance_norms(balanced_q, balanced_k, style);
    for (std::size_t i = 0; i < kHeadDim; ++i) {
      const std::size_t other = partner_of(i, kHeadDim, style);
      EXPECT_EQ(balanced_q[i] * balanced_k[i], q[i] * k[i]);
      EXPECT_EQ(balanced_q[i] / q[i], balanced_q[other] / q[other]);  // powers of two: exact
      const float ratio = std::hypot(balanced_k[i], balanced_k[other]) /
                          std::hypot(balanced_q[i], balanced_q[other]);
      EXPECT_GE(ratio, 0.5f);
      EXPECT_LE(ratio, 2.0f);
    }
  }
}

TEST(KeySmoothing, ANormThatWouldLoseBitsStays) {
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  for (const auto& [q, k] : std::vector<std::pair<std::vector<float>, std::vector<float>>>{
           {{0, 0}, {1, 2}},
           {{1, 2}, {0, 0}},
           {{1, 1}, {std::numeric_limits<float>::infinity(), 1}},
           {{1, 1}, {std::nanf(""), 1}},
           {{1, 1}, {1e6f, kTiny}}}) {
    std::vector<float> balanced_q = q, balanced_k = k;
    balance_norms(balanced_q, balanced_k, RopeStyle::kHalves);
    EXPECT_EQ(balanced_q, q);
    for (std::size_t i = 0; i < k.size(); ++i)
      EXPECT_TRUE(balanced_k[i] == k[i] || std::isnan(k[i])) << balanced_k[i];
  }
}

TEST(KeySmoothing, TheMeanIsThatOfEveryPosition) {
  std::cout << "seed " << kSeed << "\n";
  std::mt19937 random(kSeed);
  for (const RopeStyle style : kStyles) {
    RopeTable table;
    table.style = style;
    table.inv_freq = {1.0f, 0.1f, 1e-5f, 0.0f, static_cast<float>(2 * std::numbers::pi)};
    const std::size_t head_dim = 2 * table.inv_freq.size();
    const std::vector<float> bias = random_weights(random, 2 * head_dim);  // of two heads
    for (const int num_positions : {1, 2, 777, 8192}) {
      std::vector<double> sums(bias.size());
      for (int p = 0; p < num_positions; ++p) {
        for (std::size_t i = 0; i < bias.size(); ++i) {
          const std::size_t d = i % head_dim, other = partner_of(d, head_dim, style);
          const bool is_first = d < other;
          const std::size_t low = std::min(d, other);
          const double angle =
              double{table.inv_freq[style == RopeStyle::kHalves ? low : low / 2]} * p;
          const double partner = bias[i - d + other];
          sums[i] += bias[i] * std::cos(angle) + (is_first ? -1 : 1) * partner * std::sin(angle);
        }
      }
      const std::vector<float> mean = mean_turned_bias(bias, table, num_positions);
      for (std::size_t i = 0; i < bias.size(); ++i)
        EXPECT_NEAR(mean[i], sums[i] / num_positions, 1e-6) << num_positions << " at " << i;
    }
  }
}

}  // namespace
}  // namespace pagoda
