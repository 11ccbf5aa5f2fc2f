#include "quant/tensor_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iostream>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/affine_quantizer.h"
#include "tests/support/quantized_tensor.h"

namespace pagoda {
namespace {

using testing::make_quantized;
using testing::row_values;

constexpr std::uint32_t kTensorRowsSeed = 20261126;
constexpr std::int64_t kRows = 6, kCols = 512;

// Returns tensors with rows of different sizes, in every format.
std::vector<HostTensor> random_tensors() {
  std::cout << "seed " << kTensorRowsSeed << "\n";
  std::mt19937 random(kTensorRowsSeed);
  std::normal_distribution<float> normal;
  std::vector<float> values(kRows * kCols);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = normal(random) * std::ldexp(1.0f, static_cast<int>(i / kCols) - 4);
  std::vector<HostTensor> tensors;
  for (const WeightFormat format : kWeightFormats)
    tensors.push_back(make_quantized(format, {kRows, kCols}, values));
  for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBF16}) {
    tensors.push_back(testing::make_affine("rows", {4, 64, format}, {kRows, kCols}, values));
    tensors.push_back(make_quantized(format, {kRows}, std::span(values).first(kRows)));
  }
  return tensors;
}

TEST(TensorRows, EveryExactExponentIsExact) {
  for (const HostTensor& tensor : random_tensors()) {
    for (const bool up : {false, true}) {
      std::vector<int> exponents;
      for (std::int64_t row = 0; row < kRows; ++row) {
        const ExponentRange range = exact_exponents(tensor, row);
        exponents.push_back(row == 1 ? 0 : up ? range.most : range.least);
      }
      EXPECT_TRUE(std::ranges::any_of(exponents, [](int e) { return e != 0; }))
          << format_name(tensor);
      const HostTensor scaled = scale_rows(tensor, exponents);
      for (std::int64_t row = 0; row < kRows; ++row) {
        std::vector<float> expected = row_values(tensor, row);
        for (float& each : expected) each = std::ldexp(each, exponents[row]);
        EXPECT_EQ(row_values(scaled, row), expected) << format_name(tensor) << " row " << row;
      }
    }
  }
}

// With one exponent more, a number would lose bits or leave the range of its format.
TEST(TensorRows, TheRangeEndsWhereTheFormatDoes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto range_of = [](WeightFormat format, std::vector<float> values) {
    return exact_exponents(
        make_quantized(format, {1, static_cast<std::int64_t>(values.size())}, values), 0);
  };
  EXPECT_EQ(range_of(WeightFormat::kF16, {0x1p-4f, 0, -3 * 0x1p-20f}), (ExponentRange{-4, 16}));
  EXPECT_EQ(range_of(WeightFormat::kF16, {0x1p10f}), (ExponentRange{-16, 5}));
  EXPECT_EQ(range_of(WeightFormat::kF16, {0x1p-24f}), (ExponentRange{0, 16}));
  EXPECT_EQ(range_of(WeightFormat::kF32, {1, 0x1p-120f}), (ExponentRange{-6, 16}));
  EXPECT_EQ(range_of(WeightFormat::kF32, {1, 0x1p-130f}), (ExponentRange{0, 16}));
  EXPECT_EQ(range_of(WeightFormat::kBF16, {1, -0x1.8p120f}), (ExponentRange{-16, 7}));
  EXPECT_EQ(range_of(WeightFormat::kF32, {0, 0}), ExponentRange());
  for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBF16}) {
    EXPECT_EQ(range_of(format, {1, kInfinity}), (ExponentRange{0, 0}));
    EXPECT_EQ(range_of(format, {1, std::nanf("")}), (ExponentRange{0, 0}));
  }
  // A block's minimum limits the range, as its scale does. A vector's blocks span several rows.
  std::vector<float> block(32, 0x1p-15f);
  block[0] = 0x1.008p-14f;
  EXPECT_GT(range_of(WeightFormat::kQ4_1, block).least, -ExponentRange::kWidest);
  EXPECT_EQ(exact_exponents(make_quantized(WeightFormat::kQ8_0, {32}, block), 3),
            (ExponentRange{0, 0}));
}

TEST(TensorRows, TheSourceStaysAsItIs) {
  for (const HostTensor& tensor : random_tensors()) {
    const std::vector<float> before = row_values(tensor, 0);
    std::vector<int> exponents(kRows);
    exponents[0] = exact_exponents(tensor, 0).most;
    const HostTensor scaled = scale_rows(tensor, exponents);
    EXPECT_EQ(row_values(tensor, 0), before) << format_name(tensor);
    EXPECT_NE(row_values(scaled, 0), before) << format_name(tensor);
    EXPECT_EQ(scaled.bytes.data() == tensor.bytes.data(), tensor.affine.has_value());
  }
}

}  // namespace
}  // namespace pagoda
