// Tests what q4_k.h states about its quantiser, with values of many kinds.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "quant/q4_k.h"
#include "tests/support/reference_quantizers.h"

namespace pagoda {
namespace {

constexpr unsigned kQ4KSeed = 20261120;
constexpr int kValues = BlockQ4_K::kValues;
constexpr int kGroupSize = BlockQ4_K::kGroupSize;

std::vector<float> decoded(const BlockQ4_K& block) {
  std::vector<float> values(kValues);
  dequantize_q4_k(std::as_bytes(std::span(&block, 1)), values.data());
  return values;
}

BlockQ4_K searched(const std::vector<float>& values) {
  BlockQ4_K block;
  quantize_q4_k(values, reinterpret_cast<std::byte*>(&block));
  return block;
}

// Returns the squared errors, weighted as the header says; `weight` becomes the sum of weights.
double weighted_error(const std::vector<float>& values, const BlockQ4_K& block, double& weight) {
  const std::vector<float> read = decoded(block);
  double error = 0;
  weight = 0;
  for (int begin = 0; begin < kValues; begin += kGroupSize) {
    double power = 0;
    for (int i = begin; i < begin + kGroupSize; ++i) power += values[i] * values[i];
    const double root_mean_square = std::sqrt(power / kGroupSize);
    for (int i = begin; i < begin + kGroupSize; ++i) {
      const double w = root_mean_square + std::fabs(values[i]);
      error += w * std::pow(read[i] - values[i], 2);
      weight += w;
    }
  }
  return error;
}

// Returns values of a kind: normal, far from zero on either side, with outliers, few distinct
// values, one value, tiny, huge.
std::vector<float> make_values(int kind, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(kValues);
  for (int i = 0; i < kValues; ++i) {
    const float x = normal(random);
    const float kinds[] = {x,
                           x + 5,
                           x * 0.01f - 7,
                           random() % 20 == 0 ? 100 * x : x,
                           static_cast<float>(random() % 3),
                           -2.5f,
                           x * 1e-8f,
                           x * 8000,
                           i < kGroupSize ? x : 0.0f,
                           std::fabs(x)};
    values[i] = std::clamp(kinds[kind], -65504.0f, 65504.0f);
  }
  return values;
}
constexpr int kNumKinds = 10;

TEST(QuantizeQ4K, WeightedErrorIsNeverAboveThePlainFits) {
  std::mt19937 random(kQ4KSeed);
  for (int trial = 0; trial < 400; ++trial) {
    const std::vector<float> values = make_values(trial % kNumKinds, random);
    double weight = 0;
    const double found = weighted_error(values, searched(values), weight);
    const double plain = weighted_error(values, testing::quantize_block_q4_k(values), weight);
    // The last term covers the rounding of the search's float32 sums.
    EXPECT_LE(found, plain * 1.001 + weight * 1e-12)
        << "seed " << kQ4KSeed << " trial " << trial << " kind " << trial % kNumKinds;
  }
}

TEST(QuantizeQ4K, WeightedErrorStaysWithinTheBound) {
  std::mt19937 random(kQ4KSeed + 1);
  for (int trial = 0; trial < 400; ++trial) {
    const std::vector<float> values = make_values(trial % kNumKinds, random);
    const BlockQ4_K plain = testing::quantize_block_q4_k(values);
    SuperBlock numbers;
    unpack(plain, numbers);
    double weight = 0;
    const double error = weighted_error(values, searched(values), weight);
    double step = 0;
    for (int g = 0; g < 8; ++g) step = std::max<double>(step, numbers.scales[g] * numbers.scale);
    const double bound = step / 2 + 7.5 * numbers.scale + 0.5 * numbers.minimum_scale +
                         0x1p-11 * (945.0 * numbers.scale + 63.0 * numbers.minimum_scale);
    // The smallest f16 is 2^-24, so the rounding of a tiny scale is off by up to 2^-25.
    EXPECT_LE(std::sqrt(error / std::max(weight, 1e-30)), bound * 1.001 + 0x1p-25 * 1008)
        << "seed " << kQ4KSeed + 1 << " trial " << trial << " kind " << trial % kNumKinds;
  }
}

TEST(QuantizeQ4K, SearchingIsWorthIt) {
  std::mt19937 random(kQ4KSeed + 2);
  for (const int kind : {0, 3}) {
    double found = 0, plain = 0;
    for (int trial = 0; trial < 200; ++trial) {
      const std::vector<float> values = make_values(kind, random);
      const std::vector<float> a = decoded(searched(values));
      const std::vector<float> b = decoded(testing::quantize_block_q4_k(values));
      for (int i = 0; i < kValues; ++i) {
        found += std::pow(a[i] - values[i], 2);
        plain += std::pow(b[i] - values[i], 2);
      }
    }
    RecordProperty(kind == 0 ? "normal" : "outliers", std::to_string(std::sqrt(found / plain)));
    EXPECT_LE(std::sqrt(found / plain), kind == 0 ? 0.92 : 0.6) << "kind " << kind;
  }
}

TEST(QuantizeQ4K, ZerosStayZeros) {
  EXPECT_EQ(decoded(searched(std::vector<float>(kValues))), std::vector<float>(kValues));
}

}  // namespace
}  // namespace pagoda
