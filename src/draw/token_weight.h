// Defines the weight of a token in a draw: the same integer on every backend.
//
// A weight is a whole number, 2^42 for the likeliest token. Sums of whole numbers are exact in any
// order. So every backend keeps and draws the same tokens, and kernels may split sums as they like.
// Rounding loses at most 2^-25 of the likeliest token's probability over a vocabulary of 2^18.
//
// Thread-safe.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace pagoda {

// The weights of this many tokens sum to 2^62 at most.
inline constexpr int kMaxWeighedTokens = 1 << 20;

// exp(x) for x <= 0 is 2^n e^r with x = n ln 2 + r and |r| <= ln 2 / 2. e^r is a minimax polynomial
// (relative error 2^-28, fitted for it by Lawson's iteration), its highest power first. Every
// operation is one IEEE float32 addition or multiplication in this order, none of them fused.
struct ExpConstants {
  // Below this, exp is less than the smallest normal float32.
  static constexpr float kLeast = -87.0f;
  // Adding kMagic rounds to an integer, which is then in the low bits of the mantissa.
  static constexpr float kMagic = 0x1.8p23f;
  static constexpr float kInverseLn2 = 0x1.715476p0f;
  static constexpr float kLn2High = 0x1.62e4p-1f;  // 15 bits: its product with n is exact
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kLeading = 0x1.6a2434p-10f;
  static constexpr std::array<float, 6> kOthers = {0x1.1239e2p-7f, 0x1.5558f2p-5f, 0x1.555492p-3f,
                                                   0x1.fffffcp-2f, 1.0f,           1.0f};
  static constexpr float kWeightOfTheLikeliest = 0x1p42f;
};

// Returns the weight of a token. REQUIRES: logit <= max, which is finite; inverse_temperature is
// finite and not negative. -inf weighs 0.
inline std::int64_t token_weight(float logit, float max, float inverse_temperature) {
  using C = ExpConstants;
  const float x = (logit - max) * inverse_temperature;
  if (!(x >= C::kLeast)) return 0;
  const float shifted = x * C::kInverseLn2 + C::kMagic;
  const float n = shifted - C::kMagic;
  const float r = (x - n * C::kLn2High) - n * C::kLn2Low;
  float p = C::kLeading;
  for (const float c : C::kOthers) p = p * r + c;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23;
  const float exp = std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent);
  return static_cast<std::int64_t>(std::nearbyint(exp * C::kWeightOfTheLikeliest));
}

// Returns a weight as a whole number. share: the weight as kernels hold it in float32, a share in
// [0, 1] of the likeliest token's weight.
inline std::int64_t whole_weight(float share) {
  return static_cast<std::int64_t>(share * ExpConstants::kWeightOfTheLikeliest);
}

// Returns floor(total * fraction / 2^62). The total is in [0, 2^62], the fraction in [0, 2^62).
inline std::int64_t share_of(std::int64_t total, std::int64_t fraction) {
  constexpr std::int64_t kLow = (std::int64_t{1} << 31) - 1;
  const std::int64_t high = total >> 31, low = total & kLow;
  const std::int64_t share_high = fraction >> 31, share_low = fraction & kLow;
  const std::int64_t middle = high * share_low + low * share_high + ((low * share_low) >> 31);
  return high * share_high + (middle >> 31);
}

// Returns a uniform number in (0, 1) times 2^62. It is exact: random_uniform() is a multiple of
// 2^-53.
inline std::int64_t fraction_of_uniform(double uniform) {
  return static_cast<std::int64_t>(uniform * 0x1p62);
}

// Returns p, which is in (0, 1), times 2^62, rounded to a multiple of 2^31 and at least 2^31.
inline std::int64_t fraction_of(float p) {
  const auto rounded = static_cast<std::int64_t>(std::nearbyint(p * 0x1p31f));
  return (rounded > 0 ? rounded : 1) << 31;
}

}  // namespace pagoda
