#include "draw/token_weight.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace pagoda {
namespace {

constexpr std::int64_t kLikeliest = std::int64_t{1} << 42;

TEST(TokenWeight, IsTheExponentialOfTheScaledDistance) {
  std::mt19937 random(5);
  for (int i = 0; i < 100000; ++i) {
    const float max = static_cast<float>(random() % 4096) / 64.0f - 30.0f;
    const float logit = max - static_cast<float>(random()) * 0x1p-32f * 40.0f;
    for (const float inverse_temperature : {1.0f, 0.01f, 3.5f}) {
      const double x = (double{logit} - max) * inverse_temperature;
      const double exact = x < -87 ? 0 : std::exp(x) * static_cast<double>(kLikeliest);
      // The difference and the product, of up to 87, are each rounded to 2^-24; the integer to 0.5.
      ASSERT_NEAR(static_cast<double>(token_weight(logit, max, inverse_temperature)), exact,
                  1.1e-5 * exact + 0.5);
    }
  }
}

TEST(TokenWeight, EndsWhereItShould) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(token_weight(3, 3, 1), kLikeliest);
  EXPECT_EQ(token_weight(3, 3, 3e38f), kLikeliest);
  EXPECT_EQ(token_weight(-3, 3, 0), kLikeliest);
  EXPECT_EQ(token_weight(-kInfinity, 3, 1), 0);
  EXPECT_EQ(token_weight(-3e38f, 3e38f, 1), 0);
  EXPECT_EQ(token_weight(-100, 0, 1), 0);
}

TEST(ShareOf, IsTheExactProduct) {
  std::mt19937_64 random(9);
  __extension__ using Wide = unsigned __int128;
  constexpr std::int64_t kEnd = std::int64_t{1} << 62;
  for (int i = 0; i < 100000; ++i) {
    const auto total = static_cast<std::int64_t>(random() >> (2 + random() % 60));
    const auto fraction = static_cast<std::int64_t>(random() >> 2);
    const Wide product = static_cast<Wide>(total) * static_cast<Wide>(fraction);
    ASSERT_EQ(share_of(total, fraction), static_cast<std::int64_t>(product >> 62));
  }
  EXPECT_EQ(share_of(kEnd - 1, kEnd - 1), kEnd - 2);
  EXPECT_EQ(share_of(kEnd - 1, 0), 0);
  EXPECT_EQ(share_of(kEnd, kEnd - 1), kEnd - 1);
}

TEST(FractionOf, IsTheShareInWholeParts) {
  EXPECT_EQ(fraction_of(0.5f), std::int64_t{1} << 61);
  EXPECT_EQ(fraction_of(1e-30f), std::int64_t{1} << 31);
  EXPECT_EQ(fraction_of(0.99999994f), (std::int64_t{1} << 62) - (std::int64_t{1} << 38));
}

}  // namespace
}  // namespace pagoda
