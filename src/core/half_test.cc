#include "core/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace pagoda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::uint32_t kSeed = 20240607;

// Returns the value of `bits` in a 16-bit format with so many exponent and mantissa bits, computed
// in double as IEEE 754 defines it.
double meaning_of(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa == 0 ? sign * kInfinity : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

struct BFloat16 {
  using Type = bf16;
  static constexpr int kExponentBits = 8;
  static constexpr int kMantissaBits = 7;
};
struct Float16 {
  using Type = f16;
  static constexpr int kExponentBits = 5;
  static constexpr int kMantissaBits = 10;
};

template <typename Format>
class HalfTest : public testing::Test {
 protected:
  using Half = typename Format::Type;
  static double meaning(std::uint32_t bits) {
    return meaning_of(static_cast<std::uint16_t>(bits), Format::kExponentBits,
                      Format::kMantissaBits);
  }
  static constexpr std::uint16_t kInfinityBits = ((1 << Format::kExponentBits) - 1)
                                                 << Format::kMantissaBits;
  static std::uint16_t rounded_bits(float x) { return from_float<Half>(x).bits; }
};

using Formats = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(HalfTest, Formats);

TYPED_TEST(HalfTest, EveryValueMeansWhatTheStandardSays) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = to_float(typename TestFixture::Half{static_cast<std::uint16_t>(bits)});
    const double expected = this->meaning(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
    } else {
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
    }
  }
}

TYPED_TEST(HalfTest, EveryValueComesBackFromFloat32) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = typename TestFixture::Half{static_cast<std::uint16_t>(bits)};
    const std::uint16_t back = this->rounded_bits(to_float(half));
    if (std::isnan(this->meaning(bits))) {
      ASSERT_TRUE(std::isnan(this->meaning(back))) << bits;
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

// Between two neighbours, a number below the middle rounds down, a number above it up, and the
// middle to the even neighbour. The last gap, from the largest finite value to infinity, rounds the
// same way.
TYPED_TEST(HalfTest, RoundsToNearestEvenInEveryGap) {
  for (std::uint32_t low = 0; low < TestFixture::kInfinityBits; ++low) {
    const double below = this->meaning(low);
    const bool last = low + 1 == TestFixture::kInfinityBits;
    const double above = last ? 2 * below - this->meaning(low - 1) : this->meaning(low + 1);
    // A middle has at most 8 mantissa bits for bf16 and 11 for f16, so it is exact in float32.
    const auto middle = static_cast<float>((below + above) / 2);
    ASSERT_EQ(static_cast<double>(middle), (below + above) / 2) << low;
    ASSERT_EQ(this->rounded_bits(middle), low % 2 == 0 ? low : low + 1) << low;
    ASSERT_EQ(this->rounded_bits(std::nextafter(middle, 0.0f)), low) << low;
    ASSERT_EQ(this->rounded_bits(std::nextafter(middle, kInfinity)), low + 1) << low;
    ASSERT_EQ(this->rounded_bits(-middle), 0x8000 | (low % 2 == 0 ? low : low + 1)) << low;
  }
}

TYPED_TEST(HalfTest, NoOtherValueIsNearer) {
  std::mt19937 random(kSeed);
  for (int i = 0; i < 200'000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const std::uint16_t bits = this->rounded_bits(x);
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(this->meaning(bits)));
      continue;
    }
    const double value = this->meaning(bits);
    if (std::isinf(value)) continue;  // the test above checks where infinity starts
    const double error = std::abs(value - x);
    const int magnitude = bits & 0x7fff;
    if (magnitude + 1 < TestFixture::kInfinityBits) {
      ASSERT_LE(error, std::abs(std::abs(this->meaning(magnitude + 1)) - std::abs(double{x}))) << x;
    }
    if (magnitude > 0) {
      ASSERT_LE(error, std::abs(std::abs(this->meaning(magnitude - 1)) - std::abs(double{x}))) << x;
    }
    ASSERT_EQ(std::signbit(value), std::signbit(x)) << x;
  }
}

TYPED_TEST(HalfTest, InfinityAndTooLargeValuesAreInfinite) {
  EXPECT_EQ(this->rounded_bits(kInfinity), TestFixture::kInfinityBits);
  EXPECT_EQ(this->rounded_bits(-kInfinity), 0x8000 | TestFixture::kInfinityBits);
  EXPECT_EQ(this->rounded_bits(std::numeric_limits<float>::max()), TestFixture::kInfinityBits);
}

TYPED_TEST(HalfTest, ANanStaysOneWhateverItsPayload) {
  for (const std::uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0x7fc00000u}) {
    EXPECT_TRUE(std::isnan(this->meaning(this->rounded_bits(std::bit_cast<float>(bits))))) << bits;
  }
}

}  // namespace
}  // namespace pagoda
