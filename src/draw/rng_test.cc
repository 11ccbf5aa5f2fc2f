#include "draw/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace pagoda {
namespace {

// The test vectors that the paper's authors publish with their Random123 library (kat_vectors).
TEST(Philox, GivesThePublishedNumbers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomUniform, DependsOnEveryPartOfItsPlace) {
  const RandomKey place = {.seed = 7, .sample_index = 2, .position = 100};
  EXPECT_EQ(random_uniform(place), random_uniform(place));
  std::set<double> numbers = {random_uniform(place)};
  for (const std::uint64_t bit : {1ull, 1ull << 31, 1ull << 32, 1ull << 63}) {
    RandomKey other = place;
    other.seed ^= bit;
    numbers.insert(random_uniform(other));
  }
  RandomKey other = place;
  other.sample_index = 3;
  numbers.insert(random_uniform(other));
  other = place;
  other.position = 101;
  numbers.insert(random_uniform(other));
  other = place;
  other.purpose = static_cast<RandomPurpose>(1);
  numbers.insert(random_uniform(other));
  EXPECT_EQ(numbers.size(), 8u);
}

// The moments of n uniforms are within five standard deviations of the expected ones.
TEST(RandomUniform, IsUniformStrictlyInsideTheUnitInterval) {
  constexpr int kNum = 200000;
  double sum = 0, sum_of_squares = 0, sum_of_neighbours = 0, previous = 0.5;
  for (int position = 0; position < kNum; ++position) {
    const double u = random_uniform({.seed = 42, .position = position});
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    sum_of_squares += u * u;
    sum_of_neighbours += (u - 0.5) * (previous - 0.5);
    previous = u;
  }
  const double root = std::sqrt(kNum);
  EXPECT_NEAR(sum / kNum, 1.0 / 2, 5 * std::sqrt(1.0 / 12) / root);
  EXPECT_NEAR(sum_of_squares / kNum, 1.0 / 3, 5 * std::sqrt(4.0 / 45) / root);
  EXPECT_NEAR(sum_of_neighbours / kNum, 0.0, 5.0 / 12 / root);
}

}  // namespace
}  // namespace pagoda
