#include "weights/affine_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/affine_writer.h"
#include "tests/support/case_name.h"
#include "weights/safetensors.h"

namespace pagoda {
namespace {

using testing::SafetensorsWriter;

constexpr AffineLayout kLayout{.bits = 4, .group_size = 32};
const std::string kName = "model.layers.0.mlp.up_proj";

// The three tensors of a stored matrix. A test may spoil each of them.
struct Stored {
  explicit Stored(const AffineLayout& layout = kLayout, std::int64_t rows = 3,
                  std::int64_t cols = 128) {
    for (std::int64_t i = 0; i < rows * cols; ++i) values.push_back(static_cast<float>(i % 16));
    SafetensorsWriter writer;
    add_affine(writer, kName, layout, {rows, cols}, values);
    bytes = writer.bytes();
    for (StoredTensor& stored : parse_safetensors(bytes, nullptr).value()) {
      if (stored.tensor.name.ends_with(".weight")) codes = stored;
      if (stored.tensor.name.ends_with(".scales")) scales = stored;
      if (stored.tensor.name.ends_with(".biases")) biases = stored;
    }
  }
  Result<HostTensor> join(const MlxQuantization& config) const {
    return join_affine({.codes = &codes, .scales = &scales, .biases = &biases}, config);
  }

  std::vector<float> values;
  std::vector<std::byte> bytes;
  StoredTensor codes, scales, biases;
};

MlxQuantization config_of(int bits, int group_size) {
  return {.widths = {.bits = bits, .group_size = group_size}, .modules = {}};
}

TEST(JoinAffineTest, IsOneMatrixOfEveryWidth) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group_size : {32, 64, 128}) {
      for (const WeightFormat format :
           {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBF16}) {
        const AffineLayout layout{bits, group_size, format};
        const Stored stored(layout);
        const auto matrix = stored.join(config_of(bits, group_size));
        ASSERT_TRUE(matrix.ok()) << matrix.status().message();
        EXPECT_EQ(matrix->name, kName + ".weight");
        EXPECT_EQ(matrix->format, WeightFormat::kAffine);
        EXPECT_EQ(matrix->shape, (Shape{3, 128}));
        EXPECT_EQ(matrix->affine->layout, layout);
        const float half_step = 7.5f / static_cast<float>((1 << bits) - 1);
        std::vector<float> row(128);
        dequantize_affine_row(affine_row(*matrix, 2), row.data());
        for (int i = 0; i < 128; ++i)
          EXPECT_NEAR(row[i], stored.values[256 + i], half_step + 0.06f) << bits;
      }
    }
  }
}

TEST(JoinAffineTest, ShapesSayTheBitsOfAModuleThatTheConfigDoesNotName) {
  const Stored stored({.bits = 6, .group_size = 32});
  const auto matrix = stored.join(config_of(4, 32));
  ASSERT_TRUE(matrix.ok()) << matrix.status().message();
  EXPECT_EQ(matrix->affine->layout.bits, 6);
  EXPECT_EQ(matrix->shape, (Shape{3, 128}));
}

TEST(JoinAffineTest, AModuleHasTheWidthsUnderItsName) {
  MlxQuantization config = config_of(4, 64);
  config.modules[kName] = MlxWidths{.bits = 8, .group_size = 32};
  const Stored eight({.bits = 8, .group_size = 32});
  EXPECT_TRUE(eight.join(config).ok()) << eight.join(config).status().message();
  const Status four = Stored(kLayout).join(config).status();
  EXPECT_EQ(four.code(), StatusCode::kDataLoss);
  EXPECT_EQ(four.message(),
            "[checkpoint] tensor model.layers.0.mlp.up_proj.weight: expected 32 words a row for 4 "
            "groups of 32 with 8 bits, got 16");
  config.modules[kName] = std::nullopt;
  EXPECT_EQ(eight.join(config).status().message(),
            "[checkpoint] tensor model.layers.0.mlp.up_proj.weight: expected it unquantised, as "
            "config.json says, got U32 codes");
}

TEST(JoinAffineTest, MatricesOfExpertsAreStacked) {
  Stored s(kLayout, /*rows=*/6);
  s.codes.tensor.shape = {2, 3, 16};
  s.scales.tensor.shape = s.biases.tensor.shape = {2, 3, 4};
  const auto joined = s.join(config_of(4, 32));
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  EXPECT_EQ(joined->shape, (Shape{2, 3, 128}));
  std::vector<float> row(128);
  for (std::int64_t i = 0; i < 6; ++i) {
    dequantize_affine_row(affine_row(*joined, i), row.data());
    for (std::int64_t j = 0; j < 128; ++j) EXPECT_NEAR(row[j], s.values[i * 128 + j], 0.06);
  }
}

struct MalformedTensor {
  const char* name;
  void (*spoil)(Stored&);
  StatusCode code;
  const char* message;
};

void PrintTo(const MalformedTensor& malformed, std::ostream* out) {
  *out << malformed.name;
}

const MalformedTensor kMalformed[] = {
    {"RowsOfScales",
     [](Stored& s) {
       s.scales.tensor.shape = {2, 6};
     },
     StatusCode::kDataLoss,
     "[checkpoint] tensor model.layers.0.mlp.up_proj.scales: expected 3 rows, got 2"},
    {"ScalesOfBytes", [](Stored& s) { s.scales.unsupported = "U8"; }, StatusCode::kUnsupported,
     "[checkpoint] tensor model.layers.0.mlp.up_proj.scales: U8 is not supported; F32, F16 and "
     "BF16 are"},
    {"ScalesOfOneDimension", [](Stored& s) { s.scales.tensor.shape = {12}; },
     StatusCode::kUnsupported,
     "[checkpoint] tensor model.layers.0.mlp.up_proj.scales: expected a matrix of affine groups, "
     "got 12"},
    {"GroupsOfBiases",
     [](Stored& s) {
       s.biases.tensor.shape = {3, 5};
     },
     StatusCode::kDataLoss,
     "[checkpoint] tensor model.layers.0.mlp.up_proj.biases: expected 3 x 4 BF16 as its scales, "
     "got 3 x 5 BF16"},
    {"FormatOfBiases", [](Stored& s) { s.biases.tensor.format = WeightFormat::kF16; },
     StatusCode::kDataLoss,
     "[checkpoint] tensor model.layers.0.mlp.up_proj.biases: expected 3 x 4 BF16 as its scales, "
     "got 3 x 4 F16"},
    {"CodesOfFourDimensions",
     [](Stored& s) {
       s.codes.tensor.shape = {3, 2, 2, 4};
     },
     StatusCode::kUnsupported,
     "[checkpoint] tensor model.layers.0.mlp.up_proj.weight: expected a matrix of affine groups, "
     "got 3 x 2 x 2 x 4"},
    {"CodesOfMoreMatrices",
     [](Stored& s) {
       s.codes.tensor.shape = {3, 4, 4};
     },
     StatusCode::kDataLoss,
     "[checkpoint] tensor model.layers.0.mlp.up_proj.scales: expected 12 rows, got 3"},
    {"NoCodes",
     [](Stored& s) {
       s.codes.tensor.shape = {3, 0};
     },
     StatusCode::kUnsupported,
     "[checkpoint] tensor model.layers.0.mlp.up_proj.weight: expected a matrix of affine groups, "
     "got 3 x 0"},
    {"WordsOfNoWidth",
     [](Stored& s) {
       s.codes.tensor.shape = {3, 17};
     },
     StatusCode::kDataLoss,
     "[checkpoint] tensor model.layers.0.mlp.up_proj.weight: expected 16 words a row for 4 groups "
     "of 32 with 4 bits, got 17"},
    {"SevenBits",
     [](Stored& s) {
       s.codes.tensor.shape = {3, 28};
     },
     StatusCode::kDataLoss,
     "[checkpoint] tensor model.layers.0.mlp.up_proj.weight: expected 16 words a row for 4 groups "
     "of 32 with 4 bits, got 28"},
    {"WordsWithoutEnd",
     [](Stored& s) {
       s.codes.tensor.shape = {3, std::int64_t{1} << 55};
     },
     StatusCode::kDataLoss,
     "[checkpoint] tensor model.layers.0.mlp.up_proj.weight: expected 16 words a row for 4 groups "
     "of 32 with 4 bits, got 36028797018963968"},
    {"BytesCutShort", [](Stored& s) { s.codes.tensor.bytes = s.codes.tensor.bytes.first(191); },
     StatusCode::kInvalidArgument,
     "[affine] tensor model.layers.0.mlp.up_proj.weight: expected 192 bytes of codes, got 191"},
};

class JoinAffineRefuses : public ::testing::TestWithParam<MalformedTensor> {};

TEST_P(JoinAffineRefuses, InOneLine) {
  Stored stored;
  GetParam().spoil(stored);
  const Status status = stored.join(config_of(4, 32)).status();
  EXPECT_EQ(status.code(), GetParam().code);
  EXPECT_EQ(status.message(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(All, JoinAffineRefuses, ::testing::ValuesIn(kMalformed),
                         testing::kCaseName);

TEST(JoinAffineTest, SaysWhichPartIsMissing) {
  const Stored stored;
  const Status scales =
      join_affine({.codes = &stored.codes, .biases = &stored.biases}, config_of(4, 32)).status();
  EXPECT_EQ(scales.code(), StatusCode::kDataLoss);
  EXPECT_EQ(scales.message(),
            "[checkpoint] tensor model.layers.0.mlp.up_proj.weight: expected "
            "model.layers.0.mlp.up_proj.scales beside its codes, got none");
  const Status biases =
      join_affine({.codes = &stored.codes, .scales = &stored.scales}, config_of(4, 32)).status();
  EXPECT_EQ(biases.message(),
            "[checkpoint] tensor model.layers.0.mlp.up_proj.weight: expected "
            "model.layers.0.mlp.up_proj.biases beside its codes, got none");
}

}  // namespace
}  // namespace pagoda
