#include "quant/weight_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/half.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q8_0.h"
#include "tests/support/reference_quantizers.h"

namespace pagoda {
namespace {

using testing::dequantize;
using testing::quantize;

TEST(WeightFormatTest, NibblesCoverEveryValue) {
  BlockQ4_1 block{.scale = to_f16(2), .minimum = to_f16(-3), .nibbles = {}};
  for (int i = 0; i < 16; ++i) block.nibbles[i] = static_cast<std::uint8_t>(i | (15 - i) << 4);
  std::vector<float> values(32);
  dequantize_q4_1(std::as_bytes(std::span(&block, 1)), values.data());
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(values[i], 2.0f * i - 3);
    EXPECT_EQ(values[i + 16], 2.0f * (15 - i) - 3);
  }
}

// Returns how far a format's decoded values may be from the original ones, by the bound in the
// format's header.
float error_bound(WeightFormat format, const std::vector<std::byte>& block, float value) {
  const auto half_at = [&block](std::size_t i) {
    const f16 half{static_cast<std::uint16_t>(std::to_integer<int>(block[i]) |
                                              std::to_integer<int>(block[i + 1]) << 8)};
    return std::fabs(to_float(half));
  };
  switch (format) {
    case WeightFormat::kF32:
      return 0;
    case WeightFormat::kF16:
      return std::fabs(value) * 0x1p-11f;
    case WeightFormat::kBF16:
      return std::fabs(value) * 0x1p-8f;
    case WeightFormat::kQ8_0:
      return half_at(0) * (0.5f + 127 * 0x1p-11f);
    case WeightFormat::kQ4_0:
      return half_at(0) * (1 + 8 * 0x1p-11f);
    case WeightFormat::kQ4_1:
      return half_at(0) * (0.5f + 15 * 0x1p-11f) + half_at(2) * 0x1p-11f;
    case WeightFormat::kQ5_0:
      return half_at(0) * (1 + 16 * 0x1p-11f);
    case WeightFormat::kQ5_1:
      return half_at(0) * (0.5f + 31 * 0x1p-11f) + half_at(2) * 0x1p-11f;
    default:
      ADD_FAILURE() << "a format whose header promises no bound for quantisers";
      return 0;
  }
}

// The tests' own quantisers do no search, but they must write the format. So the error may be at
// most a share of the values' magnitude that suits the format's bits.
TEST(WeightFormatTest, ReferenceQuantizersComeNearInEveryFormat) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> values(2048);
  for (float& value : values) value = normal(random);
  for (const WeightFormat format : kWeightFormats) {
    if (traits_of(format).block_size == 1) continue;
    const std::vector<float> decoded = dequantize(format, quantize(format, values));
    double error = 0, power = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      error += std::pow(decoded[i] - values[i], 2);
      power += std::pow(values[i], 2);
    }
    const double bits = 8.0 * traits_of(format).block_bytes / traits_of(format).block_size;
    EXPECT_LE(std::sqrt(error / power), 1.8 * std::exp2(-(bits - 0.5)))
        << traits_of(format).name << " of " << bits << " bits";
  }
}

class RoundTripTest : public ::testing::TestWithParam<WeightFormat> {};

TEST_P(RoundTripTest, StaysWithinTheErrorBound) {
  const WeightFormat format = GetParam();
  constexpr unsigned kSeed = 20240501;
  std::mt19937 random(kSeed);
  const int block_size = traits_of(format).block_size;
  for (int trial = 0; trial < 500; ++trial) {
    std::normal_distribution<float> normal(std::ldexp(1.0f, trial % 7 - 4) * (trial % 3 - 1),
                                           std::ldexp(1.0f, trial % 11 - 5));
    std::vector<float> values(block_size);
    for (float& value : values) value = normal(random);
    const std::vector<std::byte> block = quantize(format, values);
    const std::vector<float> decoded = dequantize(format, block);
    for (int i = 0; i < block_size; ++i) {
      // The last factor covers the float32 roundings of quantising and decoding.
      EXPECT_LE(std::fabs(decoded[i] - values[i]),
                error_bound(format, block, values[i]) * 1.0001f + std::fabs(values[i]) * 0x1p-22f)
          << "seed " << kSeed << " trial " << trial << " value " << i;
    }
  }
}

TEST_P(RoundTripTest, PacksWhatItsTraitsSay) {
  const WeightFormat format = GetParam();
  const std::vector<float> values(96, 0.0f);
  const std::vector<std::byte> bytes = quantize(format, values);
  EXPECT_EQ(static_cast<std::int64_t>(bytes.size()), packed_bytes(format, 96));
  EXPECT_EQ(dequantize(format, bytes), values);
}

TEST_P(RoundTripTest, ReadsUnalignedBytes) {
  const WeightFormat format = GetParam();
  std::vector<float> values(64);
  for (int i = 0; i < 64; ++i) values[i] = 0.25f * i - 3;
  std::vector<std::byte> bytes = quantize(format, values);
  const std::vector<float> aligned = dequantize(format, bytes);
  bytes.insert(bytes.begin(), std::byte{0});
  EXPECT_EQ(dequantize(format, std::span(bytes).subspan(1)), aligned);
}

INSTANTIATE_TEST_SUITE_P(Formats, RoundTripTest,
                         ::testing::Values(WeightFormat::kF32, WeightFormat::kF16,
                                           WeightFormat::kBF16, WeightFormat::kQ8_0,
                                           WeightFormat::kQ4_0, WeightFormat::kQ4_1,
                                           WeightFormat::kQ5_0, WeightFormat::kQ5_1),
                         [](const auto& info) { return std::string(traits_of(info.param).name); });

}  // namespace
}  // namespace pagoda
