#include "backend/weight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/cpu/panel_layout.h"
#include "backend/reference/reference_weight.h"
#include "tests/support/affine_quantizer.h"
#include "tests/support/reference_quantizers.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

constexpr WeightFormat kFormats[] = {WeightFormat::kF32,  WeightFormat::kF16,  WeightFormat::kBF16,
                                     WeightFormat::kQ8_0, WeightFormat::kQ4_0, WeightFormat::kQ4_1,
                                     WeightFormat::kMXFP4};

// Counts the bytes that are released.
class FakeStorage final : public HostStorage {
 public:
  void release_pages(std::span<const std::byte> bytes) const override { released += bytes.size(); }
  std::vector<std::byte> bytes;
  mutable std::size_t released = 0;
};

struct Matrix {
  HostTensor tensor;
  std::vector<float> values;  // [rows, cols], as the codec decodes them
  std::shared_ptr<FakeStorage> storage;
};

Matrix make_matrix(WeightFormat format, std::int64_t rows, std::int64_t cols, int seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> values(rows * cols);
  for (float& value : values) value = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  Matrix matrix;
  matrix.storage = std::make_shared<FakeStorage>();
  // The matrix begins at byte 1, because a file promises no alignment.
  const std::vector<std::byte> packed = testing::quantize(format, values);
  matrix.storage->bytes.push_back(std::byte{0});
  matrix.storage->bytes.insert(matrix.storage->bytes.end(), packed.begin(), packed.end());
  matrix.values = testing::dequantize(format, packed);
  matrix.tensor = {.name = "layer.weight",
                   .format = format,
                   .shape = {rows, cols},
                   .bytes = std::span<const std::byte>(matrix.storage->bytes).subspan(1),
                   .storage = matrix.storage};
  return matrix;
}

std::unique_ptr<Exec> exec_of(Backend backend) {
  return make_exec({.backend = backend, .num_threads = 2}).value();
}

std::vector<float> read_row(const Exec& exec, const Weight& weight, std::int64_t row) {
  std::vector<float> values(weight.cols);
  if (exec.backend() == Backend::kCpu) {
    cpu::packed(weight).read_row(row, values.data());
  } else {
    reference::packed(weight).read_row(row, values.data());
  }
  return values;
}

// Returns the error that a row may have: the cpu backend rounds 16-bit values to integers of 14
// bits.
float bound_of(Backend backend, WeightFormat format, std::span<const float> row) {
  const bool is_wide = format == WeightFormat::kF16 || format == WeightFormat::kBF16;
  if (backend != Backend::kCpu || !is_wide) return 0;
  float largest = 0;
  for (const float value : row) largest = std::max(largest, std::fabs(value));
  return std::ldexp(largest, -13);
}

TEST(PrepareWeight, JoinsPartsOfAnyFormatAndKeepsEveryValue) {
  for (const Backend backend : {Backend::kReference, Backend::kCpu}) {
    const auto exec = exec_of(backend);
    for (const WeightFormat format : kFormats) {
      const Matrix first = make_matrix(format, 37, 64, 1);
      const Matrix second = make_matrix(WeightFormat::kQ4_1, 5, 64, 2);
      const HostTensor parts[] = {first.tensor, second.tensor};
      const Weight weight = prepare_weight(*exec, parts).value();
      ASSERT_EQ(weight.rows, 42);
      ASSERT_EQ(weight.cols, 64);
      for (std::int64_t row = 0; row < weight.rows; ++row) {
        const auto& source = row < 37 ? first.values : second.values;
        const auto begin = source.begin() + (row < 37 ? row : row - 37) * 64;
        const std::vector<float> expected(begin, begin + 64);
        const std::vector<float> actual = read_row(*exec, weight, row);
        const float bound = bound_of(backend, row < 37 ? format : WeightFormat::kQ4_1, expected);
        for (int i = 0; i < 64; ++i) {
          ASSERT_LE(std::fabs(actual[i] - expected[i]), bound)
              << traits_of(format).name << " row " << row;
        }
      }
    }
  }
}

// On cpu, 16-bit weights also have a power of two per 64 values, and the least power of each row.
TEST(PrepareWeight, WeightsTakeTheBytesOfTheirFile) {
  for (const Backend backend : {Backend::kReference, Backend::kCpu}) {
    const auto exec = exec_of(backend);
    for (const WeightFormat format : kFormats) {
      const HostTensor parts[] = {make_matrix(format, 64, 128).tensor};
      const Weight weight = prepare_weight(*exec, parts).value();
      const auto bytes = static_cast<std::int64_t>(parts[0].bytes.size());
      const bool is_wide = format == WeightFormat::kF16 || format == WeightFormat::kBF16;
      const std::int64_t powers = is_wide && backend == Backend::kCpu ? 64 * (128 / 64 + 1) * 4 : 0;
      EXPECT_EQ(weight.packed->num_bytes(), bytes + powers) << traits_of(format).name;
    }
  }
}

TEST(PrepareWeight, ThreadsPartsAreAllOfAWeightInOrder) {
  const auto exec = exec_of(Backend::kCpu);
  const HostTensor joined[] = {make_matrix(WeightFormat::kQ8_0, 96, 64).tensor,
                               make_matrix(WeightFormat::kQ4_1, 40, 64).tensor};
  const HostTensor equal_parts[] = {make_matrix(WeightFormat::kQ8_0, 160, 64).tensor,
                                    make_matrix(WeightFormat::kQ4_1, 160, 64).tensor};
  const std::pair<std::span<const HostTensor>, WeightUse> weights[] = {
      {std::span(joined).first(1), WeightUse::kRows},
      {joined, WeightUse::kRows},
      {equal_parts, WeightUse::kRows},
      {equal_parts, WeightUse::kGated}};
  for (const auto& [parts, use] : weights) {
    const Weight weight = prepare_weight(*exec, parts, use).value();
    EXPECT_EQ(cpu::packed(weight).is_gated(), use == WeightUse::kGated);
    const cpu::CpuWeight& packed = cpu::packed(weight);
    for (const int num_threads : {1, 2, 3, 16}) {
      const std::byte* next = packed.segments()[0].panel(0);
      for (int thread = 0; thread < num_threads; ++thread) {
        const std::span<const std::byte> part = packed.part_of(thread, num_threads);
        EXPECT_EQ(part.data(), next);
        next += part.size();
      }
      EXPECT_EQ(next - packed.segments()[0].panel(0), packed.num_bytes());
    }
  }
}

TEST(PrepareWeight, AWeightKnowsWhatThreadsReadFirstOfTheNext) {
  const auto exec = exec_of(Backend::kCpu);
  const HostTensor small[] = {make_matrix(WeightFormat::kQ8_0, 64, 64).tensor};
  const HostTensor large[] = {make_matrix(WeightFormat::kF32, 256, 1024).tensor};
  const Weight first = prepare_weight(*exec, small).value();
  const Weight second = prepare_weight(*exec, large).value();
  EXPECT_TRUE(cpu::packed(first).read_next().empty());
  first.packed->set_next(*second.packed, *exec);
  const auto ahead = cpu::packed(first).read_next();
  ASSERT_EQ(ahead.size(), 2u);
  for (int thread = 0; thread < 2; ++thread) {
    const std::span<const std::byte> part = cpu::packed(second).part_of(thread, 2);
    EXPECT_EQ(ahead[thread].data(), part.data());
    EXPECT_EQ(ahead[thread].size(), 128u << 10);
    EXPECT_GT(part.size(), ahead[thread].size());
  }
  EXPECT_TRUE(cpu::packed(second).read_next().empty());
}

TEST(PrepareWeight, AGateHasAnotherPartOfAsManyRows) {
  const auto exec = exec_of(Backend::kCpu);
  const HostTensor parts[] = {make_matrix(WeightFormat::kQ8_0, 96, 64).tensor,
                              make_matrix(WeightFormat::kQ4_1, 40, 64).tensor};
  for (const std::span<const HostTensor> wrong :
       {std::span<const HostTensor>(parts), std::span(parts).first(1)}) {
    EXPECT_EQ(prepare_weight(*exec, wrong, WeightUse::kGated).status().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST(PrepareWeight, WideWeightsAreExactWithinAFactorAndNoNumberStaysNone) {
  const auto exec = exec_of(Backend::kCpu);
  Matrix matrix = make_matrix(WeightFormat::kBF16, 2, 64);
  std::vector<bf16> values(128, to_bf16(0.0f));
  // The first row has values from 1 to 1/32 that use all eight bits of bfloat16, the second
  // infinity.
  for (int i = 0; i < 64; ++i) values[i] = to_bf16(std::ldexp(1.0f - i / 128.0f, -(i % 5)));
  values[0] = to_bf16(1.0f);
  values[70] = to_bf16(std::numeric_limits<float>::infinity());
  matrix.tensor.bytes = std::as_bytes(std::span<const bf16>(values));
  const Weight weight = prepare_weight(*exec, {&matrix.tensor, 1}).value();
  const std::vector<float> first = read_row(*exec, weight, 0);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(first[i], to_float(values[i])) << i;
  EXPECT_TRUE(std::isnan(read_row(*exec, weight, 1)[3]));
}

TEST(PrepareWeight, ReleasesEverySourcePageOnce) {
  for (const Backend backend : {Backend::kReference, Backend::kCpu}) {
    const auto exec = exec_of(backend);
    const Matrix matrix =
        make_matrix(WeightFormat::kF32, 1111, 1024);  // more than one batch of panels
    const HostTensor parts[] = {matrix.tensor};
    ASSERT_TRUE(prepare_weight(*exec, parts).ok());
    EXPECT_EQ(matrix.storage->released, matrix.tensor.bytes.size());
  }
}

TEST(PrepareWeight, SaysWhatIsWrongWithAPart) {
  const auto exec = exec_of(Backend::kCpu);
  const auto error = [&](std::span<const HostTensor> parts) {
    const Result<Weight> weight = prepare_weight(*exec, parts);
    EXPECT_EQ(weight.status().code(), StatusCode::kInvalidArgument);
    return weight.status().message();
  };
  EXPECT_THAT(error({}), HasSubstr("at least one part"));
  const HostTensor narrow[] = {make_matrix(WeightFormat::kF32, 4, 64).tensor,
                               make_matrix(WeightFormat::kF32, 4, 32).tensor};
  EXPECT_EQ(error(narrow), "[weight] tensor layer.weight: expected 64 columns, got 32");
  HostTensor vector = make_matrix(WeightFormat::kF32, 4, 64).tensor;
  vector.shape = {256};
  EXPECT_THAT(error({&vector, 1}), HasSubstr("expected a matrix, got 256"));
  HostTensor ragged = make_matrix(WeightFormat::kQ8_0, 4, 64).tensor;
  ragged.shape = {5, 48};
  EXPECT_EQ(error({&ragged, 1}),
            "[weight] tensor layer.weight: expected a multiple of 32 columns in Q8_0, got 48");
  HostTensor cut = make_matrix(WeightFormat::kF32, 4, 64).tensor;
  cut.bytes = cut.bytes.first(1000);
  EXPECT_EQ(error({&cut, 1}), "[weight] tensor layer.weight: expected 1024 bytes, got 1000");
}

std::vector<float> ramp(std::int64_t count) {
  std::vector<float> values(count);
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  return values;
}

TEST(PrepareWeight, ReferenceReadsAffineGroupsAsTheirCodecDoes) {
  const auto exec = exec_of(Backend::kReference);
  const Matrix blocks = make_matrix(WeightFormat::kQ4_1, 3, 128);
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group_size : {32, 64, 128}) {
      const HostTensor parts[] = {
          blocks.tensor,
          testing::make_affine("layer.weight", {bits, group_size, WeightFormat::kF16}, {5, 128},
                               ramp(5 * 128)),
          testing::make_affine("layer.weight", {4, 64, WeightFormat::kBF16}, {2, 128}, ramp(256))};
      const Weight weight = prepare_weight(*exec, parts).value();
      ASSERT_EQ(weight.rows, 10);
      std::int64_t num_source_bytes = 0;
      for (const HostTensor& part : parts) num_source_bytes += num_bytes(part);
      EXPECT_EQ(weight.packed->num_bytes(), num_source_bytes);
      for (std::int64_t row = 3; row < 10; ++row) {
        std::vector<float> expected(128);
        dequantize_affine_row(
            row < 8 ? affine_row(parts[1], row - 3) : affine_row(parts[2], row - 8),
            expected.data());
        EXPECT_EQ(read_row(*exec, weight, row), expected) << bits << " " << group_size;
      }
      const auto& storage = static_cast<const testing::AffineStorage&>(*parts[1].storage);
      EXPECT_EQ(static_cast<std::int64_t>(storage.released), num_bytes(parts[1]));
    }
  }
}

// Returns a matrix in MXFP4 with its scales apart from its codes.
HostTensor with_scales_apart(const HostTensor& matrix) {
  auto codes = std::make_shared<FakeStorage>(), scales = std::make_shared<FakeStorage>();
  for (std::size_t at = 0; at < matrix.bytes.size(); at += sizeof(BlockMXFP4)) {
    BlockMXFP4 block;
    std::memcpy(&block, matrix.bytes.data() + at, sizeof(block));
    const auto code = [&](int i) { return block.nibbles[i % 16] >> (i / 16 * 4) & 15; };
    for (int i = 0; i < BlockMXFP4::kValues; i += 2)
      codes->bytes.push_back(static_cast<std::byte>(code(i) | code(i + 1) << 4));
    scales->bytes.push_back(static_cast<std::byte>(block.exponent));
  }
  HostTensor apart = matrix;
  apart.bytes = codes->bytes;
  apart.storage = codes;
  apart.mxfp4 = Mxfp4Scales{.scales = scales->bytes, .storage = scales};
  return apart;
}

TEST(PrepareWeight, AMatrixMayBeAnotherOneTransposed) {
  constexpr std::int64_t kOwnRows = 37, kOwnCols = 5;
  for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kBF16}) {
    const Matrix source = make_matrix(format, kOwnCols, 2 * kOwnRows);
    HostTensor view = source.tensor;  // of every second column of the source
    const auto size = static_cast<std::size_t>(traits_of(format).block_bytes);
    view.shape = {kOwnRows, kOwnCols};
    view.strides = Strides{.row = 2, .col = 2 * kOwnRows};
    view.bytes = view.bytes.subspan(size);
    const auto exec = exec_of(Backend::kReference);
    const Weight weight = prepare_weight(*exec, {&view, 1}).value();
    const Weight on_cpu = prepare_weight(*exec_of(Backend::kCpu), {&view, 1}).value();
    EXPECT_EQ(on_cpu.rows, kOwnRows);
    for (std::int64_t row = 0; row < kOwnRows; ++row) {
      const std::vector<float> values = read_row(*exec, weight, row);
      for (std::int64_t col = 0; col < kOwnCols; ++col)
        EXPECT_EQ(values[col], source.values[col * 2 * kOwnRows + 2 * row + 1]);
    }
    view.bytes = view.bytes.first(7 * size);
    EXPECT_EQ(prepare_weight(*exec, {&view, 1}).status().message(),
              fmt::format("[strides] tensor layer.weight: expected {} bytes, got {}",
                          (36 * 2 + 4 * 74 + 1) * size, 7 * size));
  }
}

TEST(PrepareWeight, ScalesOfMxfp4MayStandApart) {
  const Matrix matrix = make_matrix(WeightFormat::kMXFP4, 37, 96);
  const HostTensor apart = with_scales_apart(matrix.tensor);
  for (const Backend backend : {Backend::kReference, Backend::kCpu}) {
    const auto exec = exec_of(backend);
    const Weight joined = prepare_weight(*exec, {&matrix.tensor, 1}).value();
    const Weight weight = prepare_weight(*exec, {&apart, 1}).value();
    EXPECT_EQ(weight.packed->num_bytes(), joined.packed->num_bytes());
    for (std::int64_t row = 0; row < weight.rows; ++row)
      EXPECT_EQ(read_row(*exec, weight, row), read_row(*exec, joined, row));
  }
  const auto& released = static_cast<const FakeStorage&>(*apart.mxfp4->storage).released;
  EXPECT_EQ(released, 2 * apart.mxfp4->scales.size()) << "by each backend";
  HostTensor cut = apart;
  cut.mxfp4->scales = cut.mxfp4->scales.first(7);
  EXPECT_EQ(prepare_weight(*exec_of(Backend::kCpu), {&cut, 1}).status().message(),
            "[mxfp4] tensor layer.weight: expected 111 bytes of scales, got 7");
}

TEST(PrepareWeight, SaysWhatIsWrongWithAffineGroups) {
  const auto exec = exec_of(Backend::kReference);
  HostTensor cut =
      testing::make_affine("layer.weight", {4, 32, WeightFormat::kF16}, {2, 64}, ramp(2 * 64));
  const HostTensor wide[] = {make_matrix(WeightFormat::kF32, 4, 96).tensor, cut};
  EXPECT_EQ(prepare_weight(*exec, wide).status().message(),
            "[weight] tensor layer.weight: expected 96 columns, got 64");
  EXPECT_EQ(prepare_vector(*exec, {&cut, 1}).status().message(),
            "[weight] tensor layer.weight: expected a vector of a plain type, got affine 4-bit, "
            "groups of 32");
  cut.affine->biases = cut.affine->biases.first(7);
  EXPECT_EQ(prepare_weight(*exec, {&cut, 1}).status().message(),
            "[affine] tensor layer.weight: expected 8 bytes of biases, got 7");
}

TEST(PrepareVector, JoinsAndWidens) {
  for (const Backend backend : {Backend::kReference, Backend::kCpu}) {
    const auto exec = exec_of(backend);
    Matrix first = make_matrix(WeightFormat::kBF16, 1, 7);
    Matrix second = make_matrix(WeightFormat::kF32, 1, 5);
    first.tensor.shape = {7};
    second.tensor.shape = {5};
    const HostTensor parts[] = {first.tensor, second.tensor};
    const Tensor vector = prepare_vector(*exec, parts).value();
    ASSERT_EQ(vector.shape(), (Shape{12}));
    std::vector<float> expected = first.values;
    expected.insert(expected.end(), second.values.begin(), second.values.end());
    const std::span<float> actual = vector.span<float>();
    EXPECT_EQ(std::vector<float>(actual.begin(), actual.end()), expected);
  }
}

TEST(PrepareVector, SaysWhatIsWrongWithAPart) {
  const auto exec = exec_of(Backend::kCpu);
  const HostTensor matrix[] = {make_matrix(WeightFormat::kF32, 4, 64).tensor};
  EXPECT_EQ(prepare_vector(*exec, matrix).status().message(),
            "[weight] tensor layer.weight: expected a vector of whole F32 blocks, got 4 x 64");
  HostTensor cut = make_matrix(WeightFormat::kF32, 1, 8).tensor;
  cut.shape = {9};
  EXPECT_EQ(prepare_vector(*exec, {&cut, 1}).status().message(),
            "[weight] tensor layer.weight: expected 36 bytes, got 32");
}

TEST(PanelLayout, MissingRowsAreZero) {
  for (const WeightFormat format : kFormats) {
    const Matrix matrix = make_matrix(format, 3, 32);
    const cpu::PanelLayout layout = cpu::panel_layout_of(matrix.tensor);
    std::vector<std::byte> panel(layout.panel_bytes(), std::byte{0xff});
    cpu::pack_panel(layout, matrix.tensor, 0, 3, panel.data());
    std::vector<float> values(32);
    for (int column = 3; column < cpu::kPanelColumns; ++column) {
      cpu::unpack_column(layout, panel.data(), column, values.data());
      for (const float value : values) EXPECT_EQ(value, 0.0f) << traits_of(format).name;
    }
  }
}

}  // namespace
}  // namespace pagoda
