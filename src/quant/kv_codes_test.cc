// Properties of the KV cache's codes: error bounds, scales and their reciprocals, entries that are
// not finite, and the order of nibbles.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "quant/kv_entry.h"
#include "quant/kv_rotation.h"
#include "quant/kv_scale.h"

namespace pagoda {
namespace {

constexpr std::uint32_t kSeed = 20240923;
constexpr KvFormat kCodes[] = {KvFormat::kInt8, KvFormat::kInt4};

struct Coded {
  std::vector<std::byte> codes;
  bf16 scales[2] = {};
  std::vector<float> rotated;  // before it was coded
  std::vector<float> decoded;  // still rotated
};

Coded code(KvFormat format, std::vector<float> entry) {
  Coded coded;
  coded.codes.resize(entry.size() * traits_of(format).bits / 8);
  encode_kv_entry(format, entry, coded.codes.data(), coded.scales);
  coded.rotated = entry;
  coded.decoded.resize(entry.size());
  decode_kv_entry(format, coded.codes.data(), coded.scales, coded.decoded);
  return coded;
}

std::vector<float> random_entry(std::mt19937& random, std::int64_t head_dim, float magnitude) {
  std::normal_distribution<float> normal(0, magnitude);
  std::vector<float> entry(head_dim);
  for (float& x : entry) x = normal(random);
  if (random() % 4 == 0) entry[random() % head_dim] *= 100;  // an outlier
  return entry;
}

TEST(KvRotation, TwiceMultipliesByTheWidth) {
  std::mt19937 random(kSeed);
  for (const auto& [head_dim, width] :
       {std::pair{64, 64}, {128, 128}, {96, 32}, {80, 16}, {2, 2}, {1, 1}, {17, 1}}) {
    EXPECT_EQ(kv_rotation_width(head_dim), width);
    std::vector<double> entry(head_dim);
    for (double& x : entry) x = static_cast<double>(random() % 1000) - 500;
    std::vector<double> twice = entry;
    rotate_kv_entry(std::span(twice));
    rotate_kv_entry(std::span(twice));
    for (int i = 0; i < head_dim; ++i) EXPECT_EQ(twice[i], entry[i] * width) << head_dim;
  }
}

TEST(KvScale, TheReciprocalIsNearForEveryScale) {
  for (std::uint32_t bits = (127 - 92) << 7; bits < 252u << 7; ++bits) {
    const bf16 scale = {static_cast<std::uint16_t>(bits)};
    const double product = double{kv_reciprocal(scale)} * to_float(scale);
    ASSERT_NEAR(product, 1, 0x1p-22) << bits;
  }
}

TEST(KvCodes, AreOffByHalfAScaleAtMost) {
  std::mt19937 random(kSeed);
  for (const KvFormat format : kCodes) {
    for (int i = 0; i < 400; ++i) {
      const std::int64_t head_dim = std::int64_t{2} << random() % 9;
      const Coded coded =
          code(format, random_entry(random, head_dim, std::ldexp(1.0f, int(random() % 60) - 30)));
      const float scale = to_float(coded.scales[0]);
      const float ends =
          format == KvFormat::kInt8
              ? 0
              : 15 * 0x1p-9f * scale + 0x1p-9f * std::fabs(to_float(coded.scales[1]));
      const float bound = scale * (0.5f + 0x1p-13f) + ends;
      for (std::int64_t d = 0; d < head_dim; ++d)
        ASSERT_NEAR(coded.decoded[d], coded.rotated[d], bound)
            << kv_format_name(format) << " " << d;
      float largest = 0;
      for (const float x : coded.rotated) largest = std::max(largest, std::fabs(x));
      const float range = format == KvFormat::kInt8 ? largest / 127 : 2.02f * largest / 15;
      ASSERT_LE(scale, range * (1 + 0x1p-6f)) << kv_format_name(format);
    }
  }
}

TEST(KvCodes, AnEntryOfOneNumberIsExactWhereBfloat16Is) {
  for (const KvFormat format : kCodes) {
    const Coded zeros = code(format, std::vector<float>(64, -0.0f));
    for (const std::byte byte : zeros.codes) EXPECT_EQ(byte, std::byte{0});
    EXPECT_EQ(zeros.scales[0].bits, 0);
    EXPECT_EQ(zeros.scales[1].bits, 0);
  }
  // Rotated, this entry has a single number that is not zero.
  const Coded ones = code(KvFormat::kInt4, std::vector<float>(16, 1.0f));
  EXPECT_EQ(ones.decoded[1], 0);
  EXPECT_NEAR(ones.decoded[0], 16, 16.0f / 128);
}

TEST(KvCodes, WhatIsNotFiniteHasNoScale) {
  std::mt19937 random(kSeed);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const KvFormat format : kCodes) {
    for (const float bad : {std::nanf(""), infinity, -infinity, 3e38f}) {
      std::vector<float> entry = random_entry(random, 64, 1);
      entry[random() % 64] = bad;
      entry[random() % 64] = bad;  // two of 3e38 are finite, but their sum is not
      const Coded coded = code(format, entry);
      if (std::isfinite(bad) && std::all_of(coded.rotated.begin(), coded.rotated.end(),
                                            [](float x) { return std::isfinite(x); })) {
        continue;
      }
      EXPECT_TRUE(std::isnan(to_float(coded.scales[0]))) << bad;
      for (const std::byte byte : coded.codes) EXPECT_EQ(byte, std::byte{0});
    }
  }
}

TEST(KvCodes, NumbersThatHardwareMayFlushCountAsZero) {
  std::vector<float> entry(32, 0x1p-61f);
  for (const KvFormat format : kCodes) EXPECT_EQ(code(format, entry).scales[0].bits, 0);
  entry[3] = 0x1p-60f;
  for (const KvFormat format : kCodes) {
    EXPECT_EQ(std::fabs(code(format, entry).rotated[5]), 0x1p-60f);
    EXPECT_NE(code(format, entry).scales[0].bits, 0);
  }
}

TEST(KvCodes, TheLowNibbleIsTheFirstHalf) {
  std::vector<float> entry(4, 0.0f);
  entry[0] = 1;  // rotated: all 1
  entry[2] = 1;  // rotated: 2, 2, 0, 0
  const Coded coded = code(KvFormat::kInt4, entry);
  EXPECT_EQ(coded.codes[0], std::byte{0x0f});
  EXPECT_EQ(coded.codes[1], std::byte{0x0f});
  EXPECT_EQ(coded.decoded[2], 0);
}

}  // namespace
}  // namespace pagoda
