#include "model/rope_frequencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace pagoda {
namespace {

using ::testing::FloatEq;
using ::testing::Pointwise;

TEST(RopeFrequenciesTest, AreAGeometricSeries) {
  const auto frequencies = rope_inverse_frequencies(64, 100000, {});
  ASSERT_EQ(frequencies.size(), 32u);
  for (int i = 0; i < 32; ++i) {
    EXPECT_FLOAT_EQ(frequencies[i], static_cast<float>(std::pow(1e5, -i / 32.0)));
  }
}

TEST(RopeFrequenciesTest, LinearScalingDividesAll) {
  const auto plain = rope_inverse_frequencies(16, 10000, {});
  const auto scaled =
      rope_inverse_frequencies(16, 10000, {.type = RopeScalingType::kLinear, .factor = 4});
  for (int i = 0; i < 8; ++i) EXPECT_EQ(scaled[i], plain[i] / 4);
}

// Llama 3's formula in numpy's float32, step by step as transformers 5.23 has it.
TEST(RopeFrequenciesTest, Llama3EqualsTransformers) {
  const RopeScaling scaling{.type = RopeScalingType::kLlama3,
                            .factor = 8,
                            .low_freq_factor = 1,
                            .high_freq_factor = 4,
                            .original_positions = 64};
  const float wanted[] = {1.0f,
                          0.07940301299095154f,
                          0.004700753837823868f,
                          0.0009115831344388425f,
                          0.00017677668074611574f,
                          3.428102354519069e-05f,
                          6.647870577580761e-06f,
                          1.289173155782919e-06f};
  EXPECT_THAT(rope_inverse_frequencies(16, 500000, scaling), Pointwise(FloatEq(), wanted));
}

TEST(RopeFrequenciesTest, Llama3KeepsFastPairsAndStretchesSlowOnes) {
  const RopeScaling scaling{.type = RopeScalingType::kLlama3, .factor = 32};
  const auto plain = rope_inverse_frequencies(128, 500000, {});
  const auto scaled = rope_inverse_frequencies(128, 500000, scaling);
  for (int i = 0; i < 64; ++i) {
    const double rotations = 8192 * plain[i] / (2 * 3.14159265358979);
    if (rotations > 4.001) {
      EXPECT_EQ(scaled[i], plain[i]) << i;
    } else if (rotations < 0.999) {
      EXPECT_EQ(scaled[i], plain[i] / 32) << i;
    } else {
      EXPECT_LE(scaled[i], plain[i]) << i;
      EXPECT_GE(scaled[i], plain[i] / 32) << i;
    }
  }
}

}  // namespace
}  // namespace pagoda
