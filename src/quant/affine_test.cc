#include "quant/affine.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "quant/host_tensor.h"
#include "tests/support/affine_quantizer.h"
#include "tests/support/hex_bytes.h"
#include "tests/support/source_path.h"

namespace pagoda {
namespace {

using testing::AffineArrays;
using testing::from_hex;

// A line of affine_vectors.txt: the values that MLX 0.32.4 decodes from a row.
struct Vector {
  AffineLayout layout;
  AffineArrays arrays;
  std::vector<float> values;      // under scales widened to float32
  std::vector<float> mlx_values;  // in the scales' own type

  AffineRow row() const {
    return {
        .layout = layout, .codes = arrays.codes, .scales = arrays.scales, .biases = arrays.biases};
  }
};

std::vector<Vector> read_vectors() {
  std::ifstream file(testing::source_path("src/quant/testdata/affine_vectors.txt"));
  std::vector<Vector> vectors;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    Vector vector;
    std::string format, codes, scales, biases, values, mlx_values;
    fields >> vector.layout.bits >> vector.layout.group_size >> format >> codes >> scales >>
        biases >> values >> mlx_values;
    for (const WeightFormat plain : {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBF16}) {
      if (traits_of(plain).name == format) vector.layout.scale_format = plain;
    }
    vector.arrays = {from_hex(codes), from_hex(scales), from_hex(biases)};
    vector.values = testing::dequantize(WeightFormat::kF32, from_hex(values));
    vector.mlx_values = testing::dequantize(vector.layout.scale_format, from_hex(mlx_values));
    vectors.push_back(std::move(vector));
  }
  return vectors;
}

std::string describe(const AffineLayout& layout) {
  return fmt::format("{} bits, groups of {}, {}", layout.bits, layout.group_size,
                     traits_of(layout.scale_format).name);
}

std::vector<float> dequantized(const AffineRow& row) {
  std::vector<float> values(row.codes.size() * 8 / static_cast<std::size_t>(row.layout.bits));
  dequantize_affine_row(row, values.data());
  return values;
}

TEST(AffineTest, VectorsAreOfEveryWidth) {
  EXPECT_EQ(read_vectors().size(), 6u * 3 * 3);
}

TEST(AffineTest, DecodesAsMlxBitForBit) {
  for (const Vector& vector : read_vectors()) {
    const std::vector<float> values = dequantized(vector.row());
    ASSERT_EQ(values.size(), vector.values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]),
                std::bit_cast<std::uint32_t>(vector.values[i]))
          << describe(vector.layout) << " value " << i;
    }
  }
}

// Checks what affine.h says of MLX's rounding under 16-bit scales.
TEST(AffineTest, LiesWithinTwoRoundingsOfMlxsOwnType) {
  int num_different = 0;
  for (const Vector& vector : read_vectors()) {
    const std::vector<float> values = dequantized(vector.row());
    const bool is_f32 = vector.layout.scale_format == WeightFormat::kF32;
    const float unit = is_f32                                             ? 0
                       : vector.layout.scale_format == WeightFormat::kF16 ? 0x1p-11f
                                                                          : 0x1p-8f;
    std::vector<float> biases(vector.values.size() /
                              static_cast<std::size_t>(vector.layout.group_size));
    affine_biases(vector.row(), biases.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float product =
          values[i] - biases[i / static_cast<std::size_t>(vector.layout.group_size)];
      EXPECT_LE(std::fabs(values[i] - vector.mlx_values[i]),
                unit * 1.01f * (std::fabs(product) + std::fabs(values[i])))
          << describe(vector.layout) << " value " << i;
      num_different += values[i] != vector.mlx_values[i];
    }
  }
  EXPECT_GT(num_different, 0);
}

TEST(AffineTest, CodesAreAStreamOfBits) {
  for (const Vector& vector : read_vectors()) {
    const auto bits = static_cast<std::size_t>(vector.layout.bits);
    std::vector<std::uint8_t> codes(vector.values.size());
    affine_codes(vector.row(), codes.data());
    for (std::size_t i = 0; i < codes.size(); ++i) {
      int code = 0;
      for (std::size_t bit = 0; bit < bits; ++bit) {
        const std::size_t at = i * bits + bit;
        code |= (std::to_integer<int>(vector.arrays.codes[at / 8]) >> at % 8 & 1) << bit;
      }
      EXPECT_EQ(codes[i], code) << describe(vector.layout) << " column " << i;
    }
  }
}

TEST(AffineTest, ReadsUnalignedBytes) {
  for (const Vector& vector : read_vectors()) {
    AffineArrays shifted = vector.arrays;
    for (auto* bytes : {&shifted.codes, &shifted.scales, &shifted.biases}) {
      bytes->insert(bytes->begin(), std::byte{0xff});
    }
    const AffineRow row{.layout = vector.layout,
                        .codes = std::span<const std::byte>(shifted.codes).subspan(1),
                        .scales = std::span<const std::byte>(shifted.scales).subspan(1),
                        .biases = std::span<const std::byte>(shifted.biases).subspan(1)};
    EXPECT_EQ(dequantized(row), vector.values) << describe(vector.layout);
  }
}

TEST(AffineTest, StaysWithinTheErrorBound) {
  constexpr unsigned kSeed = 20240501;
  std::mt19937 random(kSeed);
  for (const Vector& vector : read_vectors()) {
    const AffineLayout& layout = vector.layout;
    const float unit = layout.scale_format == WeightFormat::kF32   ? 0x1p-24f
                       : layout.scale_format == WeightFormat::kF16 ? 0x1p-11f
                                                                   : 0x1p-8f;
    std::normal_distribution<float> normal(0.5f, 2.0f);
    std::vector<float> values(static_cast<std::size_t>(layout.group_size));
    for (float& value : values) value = normal(random);
    const AffineArrays arrays = testing::quantize_affine(layout, values);
    const AffineRow row{layout, arrays.codes, arrays.scales, arrays.biases};
    float scale = 0, bias = 0;
    affine_scales(row, &scale);
    affine_biases(row, &bias);
    const float largest_code = static_cast<float>((1 << layout.bits) - 1);
    const std::vector<float> decoded = dequantized(row);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_LE(std::fabs(decoded[i] - values[i]),
                scale / 2 + unit * (scale * largest_code + std::fabs(bias)) * 1.01f +
                    std::fabs(values[i]) * 0x1p-22f)
          << "seed " << kSeed << ", " << describe(layout) << " value " << i;
    }
  }
}

constexpr AffineLayout kLayout{.bits = 4, .group_size = 32, .scale_format = WeightFormat::kF16};

HostTensor make_tensor() {
  std::vector<float> values(3 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.25f * static_cast<float>(i % 16);
  return testing::make_affine("layer.weight", kLayout, {3, 64}, values);
}

TEST(AffineTensorTest, CutsOutItsRows) {
  const HostTensor tensor = make_tensor();
  ASSERT_TRUE(check_affine(tensor).ok()) << check_affine(tensor).message();
  for (int row = 0; row < 3; ++row) {
    const std::vector<float> values = dequantized(affine_row(tensor, row));
    ASSERT_EQ(values.size(), 64u);
    for (std::size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(values[i], 0.25f * static_cast<float>(i % 16)) << row;
    }
  }
}

TEST(AffineTensorTest, KnowsItsNameAndItsBytes) {
  const HostTensor tensor = make_tensor();
  EXPECT_EQ(format_name(tensor), "affine 4-bit, groups of 32");
  EXPECT_EQ(num_bytes(tensor), 3 * (32 + 2 * 2 * 2));
  release_pages(tensor);
  EXPECT_EQ(static_cast<const testing::AffineStorage&>(*tensor.storage).released,
            static_cast<std::size_t>(num_bytes(tensor)));
  const HostTensor plain{.name = "x", .format = WeightFormat::kQ4_1, .shape = {1, 32}};
  EXPECT_EQ(format_name(plain), "Q4_1");
  EXPECT_EQ(num_bytes(plain), 0);
}

TEST(AffineTensorTest, SaysWhatIsWrong) {
  const auto error = [](auto change) {
    HostTensor tensor = make_tensor();
    change(tensor);
    const Status status = check_affine(tensor);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_EQ(error([](HostTensor& t) { t.affine.reset(); }),
            "[affine] tensor layer.weight: expected rows of affine groups, got 3 x 64");
  EXPECT_EQ(error([](HostTensor& t) { t.shape = {192}; }),
            "[affine] tensor layer.weight: expected rows of affine groups, got 192");
  EXPECT_EQ(error([](HostTensor& t) {
              t.shape = {3, 48};
            }),
            "[affine] tensor layer.weight: expected a multiple of 32 columns, got 48");
  EXPECT_EQ(error([](HostTensor& t) { t.affine->layout.bits = 7; }),
            "[affine] tensor layer.weight: expected 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or "
            "128, got 7 bits in groups of 32");
  EXPECT_EQ(error([](HostTensor& t) { t.bytes = t.bytes.first(95); }),
            "[affine] tensor layer.weight: expected 96 bytes of codes, got 95");
  EXPECT_EQ(error([](HostTensor& t) { t.affine->scales = t.affine->scales.first(6); }),
            "[affine] tensor layer.weight: expected 12 bytes of scales, got 6");
  EXPECT_EQ(error([](HostTensor& t) { t.affine->biases = {}; }),
            "[affine] tensor layer.weight: expected 12 bytes of biases, got 0");
}

TEST(AffineTensorTest, KnowsWhichLayoutsThereAre) {
  EXPECT_TRUE(is_affine_layout({6, 128, WeightFormat::kF32}));
  EXPECT_FALSE(is_affine_layout({1, 64, WeightFormat::kF16}));
  EXPECT_FALSE(is_affine_layout({4, 16, WeightFormat::kF16}));
  EXPECT_FALSE(is_affine_layout({4, 64, WeightFormat::kQ8_0}));
  EXPECT_FALSE(is_affine_layout({}));
}

}  // namespace
}  // namespace pagoda
