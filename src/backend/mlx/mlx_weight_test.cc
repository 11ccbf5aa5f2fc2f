#include "backend/mlx/mlx_weight.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "backend/mlx/mlx_exec.h"

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
    if (format == WeightFormat::kF32) put(at, normal(random));
    if (format == WeightFormat::kBF16) put(at, to_bf16(normal(random)));
    if (format != WeightFormat::kF32 && format != WeightFormat::kBF16)
      put(at, to_f16(normal(random)));
    if (format == WeightFormat::kQ4_1) put(at + 2, to_f16(normal(random)));
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
    const std::uint32_t word = segment.values.data<std::uint32_t>()[i * segment.bits / 32];
    const std::uint32_t q = word >> (i * segment.bits % 32) & ((1u << segment.bits) - 1);
    const std::int64_t group = i / WeightSegment::kGroupSize;
    values.push_back(segment.scales->data<float>()[group] * static_cast<float>(q) +
                     segment.biases->data<float>()[group]);
  }
  return values;
}

class MlxWeightTest : public ::testing::TestWithParam<WeightFormat> {};

TEST_P(MlxWeightTest, KeepsEveryValue) {
  std::mt19937 random(kSeed);
  MlxExec exec;
  const Part part = make_part(GetParam(), 5, 96, random);
  const auto weight = mlx::prepare_weight(exec, std::span(&part.tensor, 1));
  ASSERT_TRUE(weight.ok()) << weight.status().message();
  EXPECT_EQ(weight->rows, 5);
  EXPECT_EQ(weight->cols, 96);
  const auto& segments = mlx_weight(*weight).segments;
  ASSERT_EQ(segments.size(), 1u);
  const std::vector<float> expected = dequantized(part.tensor);
  const std::vector<float> values = unpacked(segments[0], 96);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], expected[i]) << "seed " << kSeed << " at " << i;
}

TEST_P(MlxWeightTest, QuantisedStaysQuantised) {
  std::mt19937 random(kSeed);
  MlxExec exec;
  const Part part = make_part(GetParam(), 4, 64, random);
  const auto weight = mlx::prepare_weight(exec, std::span(&part.tensor, 1));
  ASSERT_TRUE(weight.ok());
  const std::int64_t groups = 4 * 64 / 32;
  switch (GetParam()) {
    case WeightFormat::kQ4_0:
    case WeightFormat::kQ4_1:
      EXPECT_EQ(weight->packed->num_bytes(), groups * (16 + 8));
      break;
    case WeightFormat::kQ8_0:
      EXPECT_EQ(weight->packed->num_bytes(), groups * (32 + 8));
      break;
    default:
      EXPECT_EQ(weight->packed->num_bytes(), static_cast<std::int64_t>(part.tensor.bytes.size()));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, MlxWeightTest,
                         ::testing::Values(WeightFormat::kF32, WeightFormat::kF16,
                                           WeightFormat::kBF16, WeightFormat::kQ8_0,
                                           WeightFormat::kQ4_0, WeightFormat::kQ4_1),
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
  const auto weight = mlx::prepare_weight(exec, tensors);
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

}  // namespace
}  // namespace pagoda::mlx
