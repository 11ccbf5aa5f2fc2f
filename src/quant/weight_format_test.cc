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

// Float32 bits in, the block's bytes, and float32 bits out, as the Python package gguf 0.19.0
// computes them.
struct Vector {
  WeightFormat format;
  std::vector<std::uint32_t> values;
  std::string_view block;
  std::vector<std::uint32_t> decoded;
};

const Vector kVectors[] = {
    {WeightFormat::kQ8_0,
     {0x3d4e4fc6, 0x3e0ef981, 0xbd040f83, 0xbe5e63cb, 0xbdb0f322, 0xbe7d6f0f, 0x3d8b5a2c,
      0x3ee77502, 0xbdc802fe, 0xbe0b68ef, 0x3e49adf2, 0x3e20d5f0, 0x3da72aa1, 0xbe6aa3c9,
      0x3d28daf9, 0x3e846609, 0xbeb4df11, 0xbdb2c256, 0xbf0536c3, 0xbeac7916, 0xbf00a52f,
      0xbca828f3, 0xbea9146c, 0x3e06884c, 0x3dc6b537, 0xbbc734ba, 0xbf347cb6, 0xbde492ab,
      0x3d1133b9, 0x3dac045d, 0xbed16dc9, 0xbdbf21b1},
     "af1d0919fad9f0d30c51eee7231c0fd7072fc0f0a2c3a5fcc51811ff81ec060fb6ef",
     {0x3d4c9c00, 0x3e0e1700, 0xbd086800, 0xbe5da900, 0xbdb5e000, 0xbe7fc300, 0x3d886800,
      0x3ee62f80, 0xbdcc9c00, 0xbe0e1700, 0x3e46ed00, 0x3e1f2400, 0x3daa8200, 0xbe690700,
      0x3d1f2400, 0x3e859080, 0xbeb5e000, 0xbdb5e000, 0xbf059080, 0xbead5980, 0xbf014d40,
      0xbcb5e000, 0xbea7aa80, 0x3e086800, 0x3dc13e00, 0xbbb5e000, 0xbf347440, 0xbde35800,
      0x3d086800, 0x3daa8200, 0xbed24b00, 0xbdc13e00}},
    {WeightFormat::kQ4_0,
     {0xbe7966ac, 0xbe454659, 0x3ebc8dd5, 0xbe44dfe9, 0x3d24d65b, 0x3ea17139, 0xbe001501,
      0x3c8714cf, 0x3daa44e8, 0x3d8d9668, 0xbea2918e, 0x3d952e39, 0x3eea50b6, 0xbed40a9b,
      0x3e9d99e7, 0x3dafbb2a, 0xbe11dc16, 0x3f266e97, 0x3e8eaedf, 0xbe9e9c5c, 0x3d942eca,
      0x3e645bea, 0xbbd96760, 0x3e827eb9, 0x3cf62085, 0x3e8016d7, 0x3ef68e9c, 0xbe1c5d0b,
      0x3de33557, 0xbdb64195, 0x3db497fe, 0xbe9cc0ca},
     "33adab0a53ca78548a5887572ca7729d74c7",
     {0xbe799000, 0xbe266000, 0x3ecff800, 0xbe266000, 0x80000000, 0x3ea66000, 0xbe266000,
      0x80000000, 0x3da66000, 0x3da66000, 0xbea66000, 0x3da66000, 0x3ef99000, 0xbecff800,
      0x3ea66000, 0x3da66000, 0xbe266000, 0x3f266000, 0x3e799000, 0xbea66000, 0x3da66000,
      0x3e799000, 0x80000000, 0x3e799000, 0x80000000, 0x3e799000, 0x3ef99000, 0xbe266000,
      0x3da66000, 0xbda66000, 0x3da66000, 0xbea66000}},
    {WeightFormat::kQ4_1,
     {0xbdfd85dd, 0xbc112477, 0x3ea3a66f, 0x3ec98190, 0xbeb1b1a1, 0xbe40ea05, 0x3e79edc1,
      0xbf0c37c4, 0xbdb62bec, 0x3caa81f5, 0x3edaad71, 0x3e837e10, 0xbd4547a4, 0xbd781b27,
      0xbccd47bc, 0x3f01ce9b, 0xbda0941a, 0xbd285cca, 0x3e1f83ef, 0x3c6196d0, 0xbc167dcf,
      0xbe91854d, 0x3d3ea476, 0xbdaa22e5, 0x3eccb79c, 0x3e7bd42b, 0x3d2f21e0, 0x3e804369,
      0xbd54d4eb, 0x3ebb34e4, 0x3d462a3f, 0x3e666a41},
     "802c62b87678ac8d83458b70d7b88ebb77d787bf",
     {0xbe010000, 0x3c700000, 0x3e978000, 0x3ebb8000, 0xbeac8000, 0xbe490000, 0x3e670000,
      0xbf0c4000, 0xbd640000, 0x3c700000, 0x3edf8000, 0x3e670000, 0xbd640000, 0xbd640000,
      0xbd640000, 0x3f01c000, 0xbd640000, 0xbd640000, 0x3e1f0000, 0x3c700000, 0x3c700000,
      0xbe888000, 0x3c700000, 0xbd640000, 0x3ebb8000, 0x3e670000, 0x3c700000, 0x3e670000,
      0xbd640000, 0x3ebb8000, 0x3c700000, 0x3e670000}},
};

std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

TEST(WeightFormatTest, DecodesBlocksBitForBit) {
  for (const Vector& vector : kVectors) {
    const std::vector<float> decoded = dequantize(vector.format, from_hex(vector.block));
    ASSERT_EQ(decoded.size(), vector.decoded.size());
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(decoded[i]), vector.decoded[i])
          << traits_of(vector.format).name << " value " << i;
    }
  }
}

TEST(WeightFormatTest, ReferenceQuantizersEncodeBitForBit) {
  for (const Vector& vector : kVectors) {
    std::vector<float> values;
    values.reserve(vector.values.size());
    for (const std::uint32_t bits : vector.values) values.push_back(std::bit_cast<float>(bits));
    EXPECT_EQ(quantize(vector.format, values), from_hex(vector.block))
        << traits_of(vector.format).name;
  }
}

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

// How far a format's decoded values may lie from the original ones, by the bound in the format's
// header.
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

// The tests' own quantisers search for nothing, but what they write is the format: a share of the
// values' magnitude that a step of each makes plausible.
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
