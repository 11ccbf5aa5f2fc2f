#include "draw/row_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "draw/token_weight.h"

namespace pagoda::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> normal_row(std::size_t n, float deviation, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> row(n);
  for (float& x : row) x = normal(generator);
  return row;
}

double naive_sum_exp(const std::vector<float>& row, double max) {
  long double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<long double>(x) - max);
  return static_cast<double>(sum);
}

struct Weighed {
  std::int64_t total = 0;
  std::vector<float> weights;
  std::vector<std::int64_t> block_sums;
};

Weighed weigh(const std::vector<float>& row, float max, float inverse_temperature) {
  Weighed result = {.weights = std::vector<float>(row.size()),
                    .block_sums = std::vector<std::int64_t>(num_row_blocks(row.size()))};
  result.total = weigh_row(row, max, inverse_temperature, result.weights, result.block_sums);
  return result;
}

TEST(RowKernels, FindTheLargestLogitOfEveryBlock) {
  for (const std::size_t n : {1u, 15u, 127u, 128u, 129u, 1000u}) {
    const std::vector<float> row = normal_row(n, 3, static_cast<unsigned>(n));
    std::vector<float> block_max(num_row_blocks(n));
    const RowScan scan = scan_row(row, block_max);
    EXPECT_TRUE(scan.valid);
    EXPECT_EQ(scan.max, *std::max_element(row.begin(), row.end()));
    for (std::size_t block = 0; block < block_max.size(); ++block) {
      const auto end = row.begin() + std::min(n, (block + 1) * kRowBlock);
      EXPECT_EQ(block_max[block], *std::max_element(row.begin() + block * kRowBlock, end));
    }
  }
}

TEST(RowKernels, FindANanOrInfinityAnywhere) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          -std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
    for (std::size_t place = 0; place < 300; ++place) {
      std::vector<float> row(300, -1.0f);
      row[place] = bad;
      std::vector<float> block_max(num_row_blocks(row.size()));
      ASSERT_FALSE(scan_row(row, block_max).valid) << bad << " at " << place;
    }
  }
  std::vector<float> block_max(3);
  EXPECT_TRUE(scan_row(std::vector<float>(300, -kInfinity), block_max).valid);
}

TEST(RowKernels, SumExpIsGoodTo1e7) {
  for (const float deviation : {0.1f, 1.0f, 4.0f, 30.0f}) {
    for (const std::size_t n : {1u, 2u, 200u, 5000u, 49152u}) {
      std::vector<float> row = normal_row(n, deviation, 9);
      for (float& x : row) x += 17;
      const float max = *std::max_element(row.begin(), row.end());
      EXPECT_NEAR(std::log(sum_exp(row, max)), std::log(naive_sum_exp(row, max)), 1e-7);
    }
  }
}

TEST(RowKernels, ForbiddenAndDistantTokensWeighNothing) {
  const std::vector<float> row = {5, -kInfinity, 5 - 86.9f, 5 - 88.0f,
                                  std::numeric_limits<float>::lowest()};
  EXPECT_NEAR(sum_exp(row, 5), 1.0, 1e-12);
  const Weighed weighed = weigh(row, 5, 1);
  EXPECT_THAT(weighed.weights, ::testing::ElementsAre(1, 0, 0, 0, 0));
  EXPECT_EQ(weighed.total, std::int64_t{1} << 42);
}

TEST(RowKernels, WeightsAreTheDefinitions) {
  const std::vector<float> row = normal_row(1003, 6, 3);
  const float max = *std::max_element(row.begin(), row.end());
  for (const float inverse_temperature : {0.0f, 1e-39f, 1e-30f, 0.5f, 1.0f, 7.0f, 1e5f}) {
    const Weighed weighed = weigh(row, max, inverse_temperature);
    std::int64_t total = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::int64_t weight = token_weight(row[i], max, inverse_temperature);
      ASSERT_EQ(whole_weight(weighed.weights[i]), weight);
      total += weight;
    }
    EXPECT_EQ(weighed.total, total);
    EXPECT_EQ(
        std::accumulate(weighed.block_sums.begin(), weighed.block_sums.end(), std::int64_t{0}),
        total);
  }
}

TEST(RowKernels, WeighInPlace) {
  std::vector<float> row = normal_row(300, 2, 5);
  const float max = *std::max_element(row.begin(), row.end());
  const Weighed weighed = weigh(row, max, 1);
  std::vector<std::int64_t> block_sums(num_row_blocks(row.size()));
  EXPECT_EQ(weigh_row(row, max, 1, row, block_sums), weighed.total);
  EXPECT_EQ(row, weighed.weights);
}

// A seed's answer must not depend on the machine: all instruction sets of this machine give the
// same bits.
TEST(RowKernels, GiveTheSameBitsOnEveryInstructionSet) {
  const std::vector<float> row = normal_row(10007, 5, 11);
  const float max = *std::max_element(row.begin(), row.end());
  const double sum = sum_exp(row, max);
  const Weighed weighed = weigh(row, max, 1 / 0.7f);
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  EXPECT_FALSE(targets.empty());
  for (const std::int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_EQ(sum_exp(row, max), sum) << hwy::TargetName(target);
    const Weighed other = weigh(row, max, 1 / 0.7f);
    EXPECT_EQ(other.total, weighed.total) << hwy::TargetName(target);
    EXPECT_EQ(other.weights, weighed.weights) << hwy::TargetName(target);
    EXPECT_EQ(other.block_sums, weighed.block_sums) << hwy::TargetName(target);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace
}  // namespace pagoda::cpu
