#include "backend/mlx/mlx_weight.h"

#include <gtest/gtest.h>
#include <mlx/ops.h>

#include <cstring>
#include <random>

#include "backend/mlx/mlx_exec.h"
#include "core/half.h"
#include "tests/support/affine_quantizer.h"

namespace pagoda::mlx {
namespace {

constexpr unsigned kSeed = 7;

class CountingStorage final : public HostStorage {
 public:
  void release_pages(std::span<const std::byte> bytes) const override { released += bytes.size(); }
  mutable std::size_t released = 0;
};

struct Part {
  std::vector<std::byte> bytes;  // one byte in, as a file may have them
  HostTensor tensor;
};

// Where a block's f16 scales stand.
std::vector<int> scale_places(WeightFormat format) {
  switch (format) {
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ5_1:
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K:
      return {0, 2};
    case WeightFormat::kQ2_K:
      return {80, 82};
    case WeightFormat::kQ3_K:
      return {108};
    case WeightFormat::kQ6_K:
      return {208};
    default:
      return {0};
  }
}

// Random bits, but for the scales, which are finite.
Part make_part(WeightFormat format, std::int64_t rows, std::int64_t cols, std::mt19937& random) {
  const WeightFormatTraits& traits = traits_of(format);
  const std::int64_t size = packed_bytes(format, rows * cols);
  Part part;
  part.bytes.resize(size + 1);
  for (std::byte& byte : part.bytes) byte = static_cast<std::byte>(random());
  std::normal_distribution<float> normal;
  const auto put = [&](std::int64_t at, const auto& value) {
    std::memcpy(part.bytes.data() + 1 + at, &value, sizeof(value));
  };
  for (std::int64_t at = 0; at < size; at += traits.block_bytes) {
    if (format == WeightFormat::kF32) {
      put(at, normal(random));
    } else if (format == WeightFormat::kBF16) {
      put(at, to_bf16(normal(random)));
    } else {
      for (const int place : scale_places(format)) put(at + place, to_f16(normal(random)));
    }
  }
  part.tensor = {
      .name = "weight", .format = format, .shape = {rows, cols}, .bytes = {}, .storage = nullptr};
  part.tensor.bytes = std::span<const std::byte>(part.bytes).subspan(1);
  return part;
}

std::vector<float> dequantized(const HostTensor& tensor) {
  std::vector<float> values(tensor.shape.num_elements());
  traits_of(tensor.format).dequantize(tensor.bytes, values.data());
  return values;
}

float plain_value(const mx::array& values, std::int64_t i) {
  if (values.dtype() == mx::float32) return values.data<float>()[i];
  const std::uint16_t bits = values.data<std::uint16_t>()[i];
  return values.dtype() == mx::float16 ? to_float(f16{bits}) : to_float(bf16{bits});
}

// As MLX's definition of an affine group reads them.
std::vector<float> unpacked(const WeightSegment& segment, std::int64_t cols) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < segment.rows * cols; ++i) {
    if (segment.bits == 0) {
      values.push_back(plain_value(segment.values, i));
      continue;
    }
    const auto* bytes = segment.values.data<std::uint8_t>();
    std::uint32_t q = 0;
    for (int bit = 0; bit < segment.bits; ++bit) {
      const std::int64_t at = i * segment.bits + bit;
      q |= (bytes[at / 8] >> (at % 8) & 1u) << bit;
    }
    const std::int64_t group = i / segment.group_size;
    values.push_back(segment.scales->data<float>()[group] * static_cast<float>(q) +
                     segment.biases->data<float>()[group]);
  }
  return values;
}

class MlxWeightTest : public ::testing::TestWithParam<WeightFormat> {
 protected:
  // A matrix of this many columns is whole blocks of any format.
  static constexpr std::int64_t kCols = 512;
  bool is_rounded() const {
    return GetParam() == WeightFormat::kQ2_K || GetParam() == WeightFormat::kQ6_K;
  }
};

TEST_P(MlxWeightTest, KeepsEveryValue) {
  std::mt19937 random(kSeed);
  MlxExec exec;
  const Part part = make_part(GetParam(), 5, kCols, random);
  const auto weight = mlx::prepare_weight(exec, std::span(&part.tensor, 1), WeightUse::kRows);
  ASSERT_TRUE(weight.ok()) << weight.status().message();
  EXPECT_EQ(weight->rows, 5);
  EXPECT_EQ(weight->cols, kCols);
  const auto& segments = mlx_weight(*weight).segments;
  ASSERT_EQ(segments.size(), 1u);
  const std::vector<float> expected = dequantized(part.tensor);
  const std::vector<float> values = unpacked(segments[0], kCols);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float wanted = is_rounded() ? to_float(to_f16(expected[i])) : expected[i];
    ASSERT_EQ(values[i], wanted) << "seed " << kSeed << " at " << i;
  }
}

// MLX's own reading of the groups, which is what its products start from.
TEST_P(MlxWeightTest, MlxReadsTheSameValues) {
  std::mt19937 random(kSeed + 1);
  MlxExec exec;
  const Part part = make_part(GetParam(), 3, kCols, random);
  const auto weight = mlx::prepare_weight(exec, std::span(&part.tensor, 1), WeightUse::kRows);
  ASSERT_TRUE(weight.ok()) << weight.status().message();
  const WeightSegment& segment = mlx_weight(*weight).segments[0];
  if (segment.bits == 0) return;
  mx::array read = mx::dequantize(segment.values, *segment.scales, *segment.biases,
                                  segment.group_size, segment.bits);
  read.eval();
  const std::vector<float> expected = dequantized(part.tensor);
  ASSERT_EQ(read.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(read.data<float>()[i], expected[i]) << "seed " << kSeed << " at " << i;
  }
}

TEST_P(MlxWeightTest, TakesTheMemoryThatTheHeaderSays) {
  std::mt19937 random(kSeed);
  MlxExec exec;
  const Part part = make_part(GetParam(), 4, kCols, random);
  const auto weight = mlx::prepare_weight(exec, std::span(&part.tensor, 1), WeightUse::kRows);
  ASSERT_TRUE(weight.ok());
  const auto bits = [] {
    switch (GetParam()) {
      case WeightFormat::kF32:
        return 32;
      case WeightFormat::kQ4_0:
      case WeightFormat::kQ4_1:
      case WeightFormat::kQ4_K:
        return 6;
      case WeightFormat::kQ5_0:
      case WeightFormat::kQ5_1:
      case WeightFormat::kQ5_K:
        return 7;
      case WeightFormat::kQ8_0:
      case WeightFormat::kQ3_K:
      case WeightFormat::kIQ4_NL:
      case WeightFormat::kIQ4_XS:
        return 10;
      default:
        return 16;
    }
  };
  EXPECT_EQ(weight->packed->num_bytes(), 4 * kCols * bits() / 8);
}

INSTANTIATE_TEST_SUITE_P(Formats, MlxWeightTest, ::testing::ValuesIn(kWeightFormats),
                         [](const auto& info) { return std::string(traits_of(info.param).name); });

TEST(MlxWeightJoinTest, PartsOfOneLayoutShareASegment) {
  std::mt19937 random(kSeed);
  MlxExec exec;
  const WeightFormat formats[] = {WeightFormat::kQ4_1, WeightFormat::kQ4_0, WeightFormat::kQ8_0,
                                  WeightFormat::kBF16, WeightFormat::kBF16};
  const auto storage = std::make_shared<CountingStorage>();
  std::vector<Part> parts;
  std::vector<HostTensor> tensors;
  std::vector<float> expected;
  std::size_t num_bytes = 0;
  parts.reserve(std::size(formats));
  for (const WeightFormat format : formats) {
    parts.push_back(make_part(format, static_cast<std::int64_t>(2 + parts.size()), 32, random));
    parts.back().tensor.storage = storage;
    tensors.push_back(parts.back().tensor);
    num_bytes += tensors.back().bytes.size();
    for (const float value : dequantized(tensors.back())) expected.push_back(value);
  }
  const auto weight = mlx::prepare_weight(exec, tensors, WeightUse::kRows);
  ASSERT_TRUE(weight.ok());
  EXPECT_EQ(weight->rows, 2 + 3 + 4 + 5 + 6);
  EXPECT_EQ(storage->released, num_bytes);
  const auto& segments = mlx_weight(*weight).segments;
  ASSERT_EQ(segments.size(), 3u);
  std::vector<float> values;
  for (const WeightSegment& segment : segments) {
    for (const float value : unpacked(segment, 32)) values.push_back(value);
  }
  EXPECT_EQ(values, expected);
}

HostTensor make_affine(const AffineLayout& layout, std::int64_t rows, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(rows * 128);
  for (float& value : values) value = normal(random);
  return testing::make_affine("weight", layout, {rows, 128}, values);
}

std::vector<float> affine_values(const HostTensor& tensor) {
  std::vector<float> values(tensor.shape.num_elements());
  for (std::int64_t row = 0; row < tensor.shape[0]; ++row) {
    dequantize_affine_row(affine_row(tensor, row), values.data() + row * tensor.shape[1]);
  }
  return values;
}

TEST(MlxAffineWeightTest, MlxReadsTheCodecsValues) {
  std::mt19937 random(kSeed);
  MlxExec exec;
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group_size : {32, 64, 128}) {
      for (const WeightFormat format :
           {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBF16}) {
        const HostTensor tensor = make_affine({bits, group_size, format}, 3, random);
        const auto weight = mlx::prepare_weight(exec, std::span(&tensor, 1), WeightUse::kRows);
        ASSERT_TRUE(weight.ok()) << weight.status().message();
        EXPECT_EQ(weight->packed->num_bytes(), 3 * (128 * bits / 8 + 128 / group_size * 8));
        const WeightSegment& segment = mlx_weight(*weight).segments.at(0);
        mx::array read = mx::dequantize(segment.values, *segment.scales, *segment.biases,
                                        segment.group_size, segment.bits);
        read.eval();
        const std::span<const float> values(read.data<float>(), read.size());
        EXPECT_EQ(std::vector<float>(values.begin(), values.end()), affine_values(tensor))
            << bits << " bits, groups of " << group_size << ", seed " << kSeed;
        const auto& storage = static_cast<const testing::AffineStorage&>(*tensor.storage);
        EXPECT_EQ(static_cast<std::int64_t>(storage.released), num_bytes(tensor));
      }
    }
  }
}

TEST(MlxAffineWeightTest, PartsOfOneWidthShareASegment) {
  std::mt19937 random(kSeed);
  MlxExec exec;
  const Part blocks = make_part(WeightFormat::kQ4_0, 2, 128, random);
  const HostTensor tensors[] = {
      make_affine({4, 32, WeightFormat::kF16}, 3, random),
      blocks.tensor,
      make_affine({4, 32, WeightFormat::kBF16}, 1, random),
      make_affine({4, 64, WeightFormat::kBF16}, 2, random),
      make_affine({6, 64, WeightFormat::kBF16}, 2, random),
  };
  const auto weight = mlx::prepare_weight(exec, tensors, WeightUse::kRows);
  ASSERT_TRUE(weight.ok()) << weight.status().message();
  EXPECT_EQ(weight->rows, 10);
  const auto& segments = mlx_weight(*weight).segments;
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[0].rows, 6);
  std::vector<float> values, expected;
  for (const WeightSegment& segment : segments) {
    for (const float value : unpacked(segment, 128)) values.push_back(value);
  }
  for (const HostTensor& tensor : tensors) {
    const bool is_affine = tensor.format == WeightFormat::kAffine;
    for (const float value : is_affine ? affine_values(tensor) : dequantized(tensor)) {
      expected.push_back(value);
    }
  }
  EXPECT_EQ(values, expected);
}

}  // namespace
}  // namespace pagoda::mlx
