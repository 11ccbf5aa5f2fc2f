#include "model/key_smoothing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <limits>
#include <numbers>
#include <optional>
#include <random>

#include "tests/support/affine_quantizer.h"
#include "tests/support/quantized_tensor.h"

namespace pagoda {
namespace {

using testing::row_values;

constexpr std::uint32_t kSeed = 20261125;
constexpr RopeStyle kStyles[] = {RopeStyle::kHalves, RopeStyle::kAdjacent};

std::vector<float> random_weights(std::mt19937& random, std::size_t count) {
  std::uniform_real_distribution<float> weight(-2, 2);
  std::vector<float> weights(count);
  for (float& each : weights) each = weight(random);
  return weights;
}

// Returns the rotation of a whole head.
RopeTable whole_head(RopeStyle style, int head_dim) {
  return {.style = style, .inv_freq = std::vector<float>(head_dim / 2, 1.0f)};
}

std::size_t partner_of(std::size_t i, std::size_t head_dim, RopeStyle style) {
  if (style == RopeStyle::kAdjacent) return i ^ 1;
  return (i + head_dim / 2) % head_dim;
}

TEST(KeySmoothing, BalancedNormsKeepEveryProductAndShareTheirSize) {
  std::cout << "seed " << kSeed << "\n";
  std::mt19937 random(kSeed);
  constexpr std::size_t kDim = 16;
  for (const RopeStyle style : kStyles) {
    const std::vector<float> q = random_weights(random, kDim);
    std::vector<float> k = random_weights(random, kDim);
    k[3] *= 100;
    k[partner_of(3, kDim, style)] *= 100;
    std::vector<float> balanced_q = q, balanced_k = k;
    balance_norms(balanced_q, balanced_k, whole_head(style, kDim));
    for (std::size_t i = 0; i < kDim; ++i) {
      const std::size_t other = partner_of(i, kDim, style);
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
    balance_norms(balanced_q, balanced_k, whole_head(RopeStyle::kHalves, 2));
    EXPECT_EQ(balanced_q, q);
    for (std::size_t i = 0; i < k.size(); ++i)
      EXPECT_TRUE(balanced_k[i] == k[i] || std::isnan(k[i])) << balanced_k[i];
  }
}

constexpr int kDimOfHead = 16, kNumQueryHeads = 6, kNumKeyHeads = 2, kHiddenSize = 64;
constexpr int kGroup = kNumQueryHeads / kNumKeyHeads;

HostTensor tensor_of(WeightFormat format, const Shape& shape, std::span<const float> values) {
  if (format == WeightFormat::kAffine)
    return testing::make_affine("rows", {4, 32, WeightFormat::kBF16}, shape, values);
  return testing::make_quantized(format, shape, values);
}

// Heads of a projection in one format, with a float32 bias.
struct Heads {
  Heads(std::mt19937& random, WeightFormat format, int heads)
      : num_heads(heads),
        values(random_weights(random, static_cast<std::size_t>(heads) * kDimOfHead * kHiddenSize)),
        bias_values(random_weights(random, static_cast<std::size_t>(heads) * kDimOfHead)) {
    make(format);
  }
  void make(WeightFormat format) {
    weight = tensor_of(format, {std::int64_t{num_heads} * kDimOfHead, kHiddenSize}, values);
    bias = tensor_of(WeightFormat::kF32, {std::int64_t{num_heads} * kDimOfHead}, bias_values);
  }
  std::span<float> row(int head, std::size_t i) {
    return std::span(values).subspan((head * kDimOfHead + i) * kHiddenSize, kHiddenSize);
  }
  HeadProjection projection() { return {.weight = weight, .bias = &bias, .num_heads = num_heads}; }

  int num_heads;
  std::vector<float> values, bias_values;
  HostTensor weight, bias;
};

// Returns the exponent of the power of two by which a row and its bias were multiplied, if any.
std::optional<int> exponent_of(const HostTensor& before, const HostTensor& bias_before,
                               const Heads& after, int head, std::size_t i) {
  const auto row = static_cast<std::int64_t>(head * kDimOfHead + i);
  const float bias = row_values(bias_before, row)[0];
  const int exponent = std::ilogb(row_values(after.bias, row)[0]) - std::ilogb(bias);
  std::vector<float> expected = row_values(before, row);
  for (float& each : expected) each = std::ldexp(each, exponent);
  if (row_values(after.weight, row) != expected) return {};
  if (row_values(after.bias, row)[0] != std::ldexp(bias, exponent)) return {};
  return exponent;
}

TEST(KeySmoothing, BalancedProjectionsKeepEveryProductAndShareTheirSize) {
  std::cout << "seed " << kSeed << "\n";
  std::mt19937 random(kSeed);
  for (const WeightFormat format :
       {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBF16, WeightFormat::kQ8_0,
        WeightFormat::kQ4_1, WeightFormat::kAffine}) {
    for (const RopeStyle style : kStyles) {
      Heads q(random, format, kNumQueryHeads), k(random, format, kNumKeyHeads);
      const std::size_t large = 3, other = partner_of(large, kDimOfHead, style);
      for (const std::size_t i : {large, other}) {
        for (float& value : k.row(1, i)) value *= 256;
      }
      k.make(format);
      const HostTensor q_before = q.weight, q_bias = q.bias, k_before = k.weight, k_bias = k.bias;
      balance_projections(q.projection(), k.projection(), kDimOfHead,
                          whole_head(style, kDimOfHead));
      for (int head = 0; head < kNumQueryHeads; ++head) {
        for (std::size_t i = 0; i < kDimOfHead; ++i) {
          const auto of_key = exponent_of(k_before, k_bias, k, head / kGroup, i);
          const auto of_query = exponent_of(q_before, q_bias, q, head, i);
          ASSERT_TRUE(of_key && of_query) << "head " << head << " dimension " << i;
          EXPECT_EQ(*of_query, -*of_key) << "head " << head << " dimension " << i;
          EXPECT_EQ(of_query,
                    exponent_of(q_before, q_bias, q, head, partner_of(i, kDimOfHead, style)));
          EXPECT_EQ(*of_query, head >= kGroup && (i == large || i == other) ? 4 : 0) << head;
        }
      }
    }
  }
}

TEST(KeySmoothing, AProjectionGoesAsFarAsNoBitIsLost) {
  std::mt19937 random(kSeed);
  for (const auto& [number, expected] : std::vector<std::pair<float, int>>{
           {1.0f, 4},
           {0x1.8p-21f, 2},  // 3 * 2^-22 in a format that ends at 2^-24
           {0x1p-24f, 0},
           {std::numeric_limits<float>::infinity(), 0},
           {std::nanf(""), 0}}) {
    Heads q(random, WeightFormat::kF16, kNumQueryHeads),
        k(random, WeightFormat::kF16, kNumKeyHeads);
    for (const std::size_t i : {3, 3 + kDimOfHead / 2}) {
      for (float& value : k.row(0, i)) value = 256;
    }
    k.row(0, 3)[5] = number;
    k.make(WeightFormat::kF16);
    const HostTensor q_before = q.weight, q_bias = q.bias;
    balance_projections(q.projection(), k.projection(), kDimOfHead,
                        whole_head(RopeStyle::kHalves, kDimOfHead));
    EXPECT_EQ(exponent_of(q_before, q_bias, q, kGroup - 1, 3), expected) << number;
  }
}

TEST(KeySmoothing, ProjectionsOfEvenPairsStayWhereTheyAre) {
  std::mt19937 random(kSeed);
  Heads q(random, WeightFormat::kBF16, kNumQueryHeads),
      k(random, WeightFormat::kBF16, kNumKeyHeads);
  for (float& value : k.values) value *= 64;  // all alike, so that balancing gains nothing
  k.make(WeightFormat::kBF16);
  const std::byte* const q_bytes = q.weight.bytes.data();
  const std::byte* const k_bytes = k.weight.bytes.data();
  balance_projections(q.projection(), k.projection(), kDimOfHead,
                      whole_head(RopeStyle::kAdjacent, kDimOfHead));
  EXPECT_EQ(q.weight.bytes.data(), q_bytes);
  EXPECT_EQ(k.weight.bytes.data(), k_bytes);
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
      const std::vector<float> mean =
          mean_rotated_bias(bias, table, static_cast<int>(head_dim), num_positions);
      for (std::size_t i = 0; i < bias.size(); ++i)
        EXPECT_NEAR(mean[i], sums[i] / num_positions, 1e-6) << num_positions << " at " << i;
    }
  }
}

// Elements that a rotation leaves alone are their own mean, and balancing does not change them.
TEST(KeySmoothing, OnlyTurnedPairsAreMovedOrBalanced) {
  constexpr int kDim = 8;
  const RopeTable table = {.inv_freq = {1.0f, 0.5f}, .factor = 1.25f};  // of elements 0 to 3
  const std::vector<float> bias = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> mean = mean_rotated_bias(bias, table, kDim, /*num_positions=*/1);
  for (int i = 0; i < kDim; ++i) EXPECT_EQ(mean[i], i < 4 ? 1.25f * bias[i] : bias[i]) << i;
  std::vector<float> q_norm(kDim, 1.0f), k_norm(kDim, 16.0f);
  balance_norms(q_norm, k_norm, table);
  for (int i = 0; i < kDim; ++i) EXPECT_EQ(k_norm[i], i < 4 ? 4.0f : 16.0f) << i;
}

}  // namespace
}  // namespace pagoda
