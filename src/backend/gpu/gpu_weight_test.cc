#include "backend/gpu/gpu_weight.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "backend/backend.h"
#include "backend/gpu/gpu_op.h"
#include "backend/mlx/mlx_exec.h"
#include "core/half.h"
#include "quant/block_numbers.h"
#include "tests/support/affine_quantizer.h"

namespace pagoda::gpu {
namespace {

constexpr unsigned kSeed = 7;

class OwnedBytes final : public HostStorage {
 public:
  void release_pages(std::span<const std::byte> part) const override { released += part.size(); }
  std::vector<std::byte> bytes;  // the matrix begins at byte 1: files promise no alignment
  mutable std::size_t released = 0;
};

// Makes a matrix of random bits, except for the scales, which are finite.
HostTensor make_blocks(WeightFormat format, const Shape& shape, std::mt19937& random) {
  const WeightFormatTraits& traits = traits_of(format);
  const std::int64_t size = packed_bytes(format, shape.num_elements());
  auto storage = std::make_shared<OwnedBytes>();
  storage->bytes.resize(size + 1);
  for (std::byte& byte : storage->bytes) byte = static_cast<std::byte>(random());
  std::normal_distribution<float> normal;
  const auto put = [&](std::int64_t at, const auto& value) {
    std::memcpy(storage->bytes.data() + 1 + at, &value, sizeof(value));
  };
  for (std::int64_t at = 0; at < size; at += traits.block_bytes) {
    if (format == WeightFormat::kF32) {
      put(at, normal(random));
    } else if (format == WeightFormat::kBF16) {
      put(at, to_bf16(normal(random)));
    } else if (format != WeightFormat::kMXFP4) {
      const BlockNumbers numbers = block_numbers(format);
      for (std::size_t i = 0; i < numbers.count; ++i)
        put(at + static_cast<std::int64_t>(numbers.offset + i * sizeof(f16)),
            to_f16(normal(random)));
    }
  }
  HostTensor tensor = {
      .name = "weight", .format = format, .shape = shape, .bytes = {}, .storage = storage};
  tensor.bytes = std::span<const std::byte>(storage->bytes).subspan(1);
  return tensor;
}

HostTensor make_matrix(const PanelFormat& format, const Shape& shape, std::mt19937& random) {
  if (!format.is_affine()) return make_blocks(format.format, shape, random);
  std::normal_distribution<float> normal;
  std::vector<float> values(shape.num_elements());
  for (float& value : values) value = normal(random);
  return testing::make_affine("weight", format.affine, shape, values);
}

std::vector<float> values_of(const HostTensor& tensor) {
  std::vector<float> values(tensor.shape.num_elements());
  if (!tensor.affine) {
    traits_of(tensor.format).dequantize(tensor.bytes, values.data());
    return values;
  }
  for (std::int64_t row = 0; row < tensor.shape[0]; ++row) {
    dequantize_affine_row(affine_row(tensor, row), values.data() + row * tensor.shape[1]);
  }
  return values;
}

const std::uint32_t* words_of(const Tensor& panels) {
  return mlx::whole_array(panels).data<std::uint32_t>() + panels.offset();
}

// Returns all values of a weight, row by row.
std::vector<float> values_of(const Weight& weight) {
  std::vector<float> values;
  for (const WeightSegment& segment : gpu_weight(weight).segments) {
    for (std::int64_t row = 0; row < segment.rows; ++row) {
      values.resize(values.size() + weight.cols);
      unpack_column(segment.format,
                    words_of(segment.panels) + row / kPanelColumns * segment.panel_stride,
                    weight.cols, static_cast<int>(row % kPanelColumns),
                    values.data() + values.size() - weight.cols);
    }
  }
  return values;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<PanelFormat> all_formats() {
  std::vector<PanelFormat> formats;
  for (const WeightFormat format : kWeightFormats) formats.push_back({.format = format});
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group_size : {32, 64, 128}) {
      for (const WeightFormat type : {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBF16})
        formats.push_back({.format = WeightFormat::kAffine, .affine = {bits, group_size, type}});
    }
  }
  return formats;
}

std::string name_of(const PanelFormat& format) {
  std::string name;
  for (const std::string_view argument : template_arguments(format)) {
    if (!name.empty()) name += '_';
    name += argument;
  }
  return name;
}

// Tests panels by an Exec that uses kernels. No op runs, so no GPU is needed.
class GpuPanelsTest : public ::testing::TestWithParam<PanelFormat> {
 protected:
  // Returns the smallest number of columns that the format allows and that is at least `cols`.
  static std::int64_t cols_from(std::int64_t cols) {
    const std::int64_t block = GetParam().is_affine() ? GetParam().affine.group_size
                                                      : traits_of(GetParam().format).block_size;
    return (cols + block - 1) / block * block;
  }
  std::mt19937 random_{kSeed};
  mlx::MlxExec exec_{nullptr};
};

TEST_P(GpuPanelsTest, KeepEveryValue) {
  for (const std::int64_t cols : {cols_from(1), cols_from(96), cols_from(576)}) {
    for (const std::int64_t rows : {1, 37}) {
      const HostTensor matrix = make_matrix(GetParam(), {rows, cols}, random_);
      const auto weight = gpu::prepare_weight(exec_, std::span(&matrix, 1), WeightUse::kRows);
      ASSERT_TRUE(weight.ok()) << weight.status().message();
      EXPECT_EQ(weight->rows, rows);
      EXPECT_EQ(weight->cols, cols);
      EXPECT_TRUE(same_bits(values_of(*weight), values_of(matrix)))
          << rows << " x " << cols << ", seed " << kSeed;
    }
  }
}

TEST_P(GpuPanelsTest, TakeHardlyMoreThanTheFile) {
  for (const std::int64_t cols : {cols_from(64), cols_from(576), cols_from(1536)}) {
    const HostTensor matrix = make_matrix(GetParam(), {64, cols}, random_);
    const auto weight = gpu::prepare_weight(exec_, std::span(&matrix, 1), WeightUse::kRows);
    ASSERT_TRUE(weight.ok()) << weight.status().message();
    const auto bytes = static_cast<double>(weight->packed->num_bytes());
    const auto of_file = static_cast<double>(num_bytes(matrix));
    const bool is_filled_up = GetParam().is_super() && GetParam().halves(256) > 0;
    EXPECT_GE(bytes, of_file) << cols;
    EXPECT_LE(bytes, of_file * (is_filled_up ? 1.02 : 1.0)) << cols;
  }
}

TEST_P(GpuPanelsTest, AreInterleavedWhereTheyAreAGateAndItsOtherPart) {
  const std::int64_t cols = cols_from(96), dim = 40;
  const HostTensor parts[] = {make_matrix(GetParam(), {dim, cols}, random_),
                              make_matrix(GetParam(), {dim, cols}, random_)};
  const auto weight = gpu::prepare_weight(exec_, parts, WeightUse::kGated);
  ASSERT_TRUE(weight.ok()) << weight.status().message();
  const GpuWeight& packed = gpu_weight(*weight);
  ASSERT_EQ(packed.segments.size(), 2u);
  EXPECT_TRUE(packed.is_gated());
  EXPECT_EQ(words_of(packed.segments[1].panels),
            words_of(packed.segments[0].panels) + packed.segments[0].panel_words);
  std::vector<float> expected = values_of(parts[0]);
  const std::vector<float> up = values_of(parts[1]);
  expected.insert(expected.end(), up.begin(), up.end());
  EXPECT_TRUE(same_bits(values_of(*weight), expected)) << "seed " << kSeed;
}

INSTANTIATE_TEST_SUITE_P(Formats, GpuPanelsTest, ::testing::ValuesIn(all_formats()),
                         [](const auto& info) { return name_of(info.param); });

TEST(GpuWeightTest, PartsOfOneFormatShareASegment) {
  std::mt19937 random(kSeed);
  mlx::MlxExec exec(nullptr);
  const PanelFormat affine = {.format = WeightFormat::kAffine,
                              .affine = {4, 64, WeightFormat::kBF16}};
  const PanelFormat wide = {.format = WeightFormat::kAffine,
                            .affine = {4, 128, WeightFormat::kBF16}};
  const PanelFormat formats[] = {{WeightFormat::kQ4_K},
                                 {WeightFormat::kQ4_K},
                                 {WeightFormat::kQ6_K},
                                 {WeightFormat::kBF16},
                                 affine,
                                 affine,
                                 wide};
  std::vector<HostTensor> parts;
  std::vector<float> expected;
  for (const PanelFormat& format : formats) {
    const auto rows = static_cast<std::int64_t>(19 + parts.size());
    parts.push_back(make_matrix(format, {rows, 256}, random));
    const std::vector<float> values = values_of(parts.back());
    expected.insert(expected.end(), values.begin(), values.end());
  }
  const auto weight = gpu::prepare_weight(exec, parts, WeightUse::kRows);
  ASSERT_TRUE(weight.ok()) << weight.status().message();
  EXPECT_EQ(gpu_weight(*weight).segments.size(), 5u);
  EXPECT_TRUE(same_bits(values_of(*weight), expected)) << "seed " << kSeed;
  for (const HostTensor& part : parts) {
    const std::size_t released =
        part.affine ? static_cast<const testing::AffineStorage&>(*part.storage).released
                    : static_cast<const OwnedBytes&>(*part.storage).released;
    EXPECT_EQ(static_cast<std::int64_t>(released), num_bytes(part)) << format_name(part);
  }
}

TEST(GpuWeightTest, AGateOfAnotherFormatStandsAlone) {
  std::mt19937 random(kSeed);
  mlx::MlxExec exec(nullptr);
  const HostTensor parts[] = {make_blocks(WeightFormat::kQ4_0, {33, 64}, random),
                              make_blocks(WeightFormat::kQ8_0, {33, 64}, random)};
  const auto weight = gpu::prepare_weight(exec, parts, WeightUse::kGated);
  ASSERT_TRUE(weight.ok()) << weight.status().message();
  EXPECT_EQ(gpu_weight(*weight).segments.size(), 2u);
  EXPECT_FALSE(gpu_weight(*weight).is_gated());
}

// A unit of Q5_0 as gpu_panels.h draws it: scales, the codes' four low bits, and their fifth
// bits.
TEST(GpuWeightTest, AColumnLiesAsDrawn) {
  std::mt19937 random(kSeed);
  constexpr int kColumn = 5, kUnit = 128, kScaleWords = 64, kLowWords = 32 * kUnit / 8;
  const HostTensor matrix = make_blocks(WeightFormat::kQ5_0, {1, kUnit}, random);
  std::vector<std::uint32_t> panel(panel_words({WeightFormat::kQ5_0}, kUnit));
  pack_column(matrix, 0, kColumn, panel.data());
  for (int k = 0; k < kUnit; ++k) {
    const int piece = k / 32, word = k % 32 / 8, nibble = k % 8;
    const std::uint32_t low = panel[kScaleWords + 128 * piece + 4 * kColumn + word] >> (4 * nibble);
    const std::uint32_t high =
        panel[kScaleWords + kLowWords + 4 * kColumn + piece] >> (4 * nibble + word);
    const std::uint32_t scale = panel[2 * kColumn + piece / 2] >> (16 * (piece % 2));
    const int code = static_cast<int>((low & 15) | (high & 1) << 4);
    EXPECT_EQ(to_float(f16{static_cast<std::uint16_t>(scale)}) * static_cast<float>(code - 16),
              values_of(matrix)[k])
        << k;
  }
}

TEST(GpuWeightTest, OnTheHostItIsTheCpuBackendsWeight) {
  std::mt19937 random(kSeed);
  mlx::MlxExec exec(std::make_shared<mlx::HostBodies>(
      pagoda::make_exec({.backend = Backend::kCpu, .num_threads = 2}).value()));
  for (const PanelFormat& format : all_formats()) {
    const HostTensor parts[] = {make_matrix(format, {40, 256}, random),
                                make_matrix(format, {40, 256}, random)};
    const auto weight = gpu::prepare_weight(exec, parts, WeightUse::kGated);
    const auto next = gpu::prepare_weight(exec, parts, WeightUse::kRows);
    ASSERT_TRUE(weight.ok() && next.ok()) << name_of(format);
    EXPECT_TRUE(gpu_weight(*weight).segments.empty());
    const auto expected = cpu::prepare_weight(host_exec(exec), parts, WeightUse::kGated);
    EXPECT_EQ(weight->packed->num_bytes(), expected->packed->num_bytes());
    EXPECT_EQ(weight->rows, 80);
    weight->packed->set_next(*next->packed, exec);
  }
}

}  // namespace
}  // namespace pagoda::gpu
