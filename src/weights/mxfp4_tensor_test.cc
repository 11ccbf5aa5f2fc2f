#include "weights/mxfp4_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "quant/tensor_rows.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"
#include "weights/checkpoint.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SafetensorsWriter;
using testing::TemporaryFolder;

constexpr unsigned kMxfp4Seed = 7;
constexpr std::int64_t kExperts = 2, kRows = 4, kCols = 64;
constexpr std::int64_t kBlocks = kCols / 32;

// Codes and scales as gpt-oss and MLX store them, and the values that they stand for.
struct Mxfp4Arrays {
  Mxfp4Arrays() {
    constexpr float kOfNibble[16] = {0,  0.5f,  1,  1.5f,  2,  3,  4,  6,
                                     -0, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    std::mt19937 random(kMxfp4Seed);
    for (std::int64_t block = 0; block < kExperts * kRows * kBlocks; ++block) {
      const auto exponent = static_cast<int>(100 + random() % 50);
      scales.push_back(static_cast<std::byte>(exponent));
      for (int pair = 0; pair < 16; ++pair) {
        const unsigned byte = random() % 256;
        codes.push_back(static_cast<std::byte>(byte));
        for (const unsigned nibble : {byte % 16, byte / 16})
          values.push_back(std::ldexp(kOfNibble[nibble], exponent - 127));
      }
    }
  }
  std::vector<std::byte> codes, scales;
  std::vector<float> values;
};

std::vector<float> values_of_rows(const HostTensor& matrix) {
  std::vector<float> values(matrix.shape.num_elements());
  for (std::int64_t row = 0; row < matrix.shape[0]; ++row)
    read_row(matrix, row, values.data() + row * matrix.shape[1]);
  return values;
}

HostTensor as_matrix(HostTensor tensor) {
  tensor.shape = {tensor.shape.num_elements() / tensor.shape[-1], tensor.shape[-1]};
  return tensor;
}

class Mxfp4Folder {
 public:
  Mxfp4Folder(const Shape& blocks, const Shape& scales, const char* config = "{}") {
    SafetensorsWriter writer;
    writer.add_raw("experts.down_proj_blocks", blocks, "U8", arrays_.codes);
    writer.add_raw("experts.down_proj_scales", scales, "U8", arrays_.scales);
    write(writer, config);
  }
  explicit Mxfp4Folder(const char* config) {
    SafetensorsWriter writer;
    writer.add_raw("experts.down_proj.weight", {kExperts, kRows, kCols / 8}, "U32", arrays_.codes);
    writer.add_raw("experts.down_proj.scales", {kExperts, kRows, kBlocks}, "U8", arrays_.scales);
    write(writer, config);
  }
  Checkpoint open() const { return Checkpoint::open(folder_.path()).value(); }
  const Mxfp4Arrays& arrays() const { return arrays_; }

 private:
  void write(const SafetensorsWriter& writer, const char* config) const {
    writer.write(folder_ / "model.safetensors");
    testing::write_file(folder_ / "config.json",
                        std::as_bytes(std::span(std::string_view(config))));
  }
  TemporaryFolder folder_;
  Mxfp4Arrays arrays_;
};

TEST(Mxfp4Tensor, BlocksAndScalesAreOneTensor) {
  const Mxfp4Folder folder({kExperts, kRows, kBlocks, 16}, {kExperts, kRows, kBlocks},
                           R"({"quantization_config": {"quant_method": "mxfp4"}})");
  const Checkpoint checkpoint = folder.open();
  EXPECT_THAT(checkpoint.names(), ElementsAre("experts.down_proj_blocks"));
  const auto tensor = checkpoint.tensor("experts.down_proj_blocks");
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->shape, (Shape{kExperts, kRows, kCols}));
  EXPECT_EQ(format_name(*tensor), "MXFP4");
  EXPECT_EQ(num_bytes(*tensor), kExperts * kRows * kBlocks * 17);
  EXPECT_EQ(values_of_rows(as_matrix(*tensor)), folder.arrays().values);
}

TEST(Mxfp4Tensor, MlxsWordsAreTheSame) {
  const Mxfp4Folder folder(
      R"({"quantization": {"group_size": 64, "bits": 8,
          "experts.down_proj": {"group_size": 32, "bits": 4, "mode": "mxfp4"}}})");
  const Checkpoint checkpoint = folder.open();
  EXPECT_THAT(checkpoint.names(), ElementsAre("experts.down_proj.weight"));
  const auto tensor = checkpoint.tensor("experts.down_proj.weight");
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->shape, (Shape{kExperts, kRows, kCols}));
  EXPECT_EQ(values_of_rows(as_matrix(*tensor)), folder.arrays().values);
}

TEST(Mxfp4Tensor, RowsOfGateAndUpTakeTurns) {
  const Mxfp4Folder folder({kExperts, kRows, kBlocks, 16}, {kExperts, kRows, kBlocks});
  const HostTensor all = as_matrix(folder.open().tensor("experts.down_proj_blocks").value());
  const HostTensor second = slice_rows(all, kRows, kRows);
  const std::vector<float> values = values_of_rows(second);
  for (const std::int64_t first : {0, 1}) {
    const HostTensor part = rows_in_turn(second, first, 2);
    ASSERT_TRUE(check_mxfp4(part).ok()) << check_mxfp4(part).message();
    const std::vector<float> of_part = values_of_rows(part);
    for (std::int64_t row = 0; row < kRows / 2; ++row) {
      EXPECT_EQ(std::vector(of_part.begin() + row * kCols, of_part.begin() + (row + 1) * kCols),
                std::vector(values.begin() + (2 * row + first) * kCols,
                            values.begin() + (2 * row + first + 1) * kCols));
    }
  }
}

TEST(Mxfp4Tensor, SaysWhatIsWrong) {
  const auto error = [](const Shape& blocks, const Shape& scales) {
    const auto tensor = Mxfp4Folder(blocks, scales).open().tensor("experts.down_proj_blocks");
    EXPECT_EQ(tensor.status().code(), StatusCode::kDataLoss);
    return tensor.status().message();
  };
  EXPECT_EQ(error({kExperts, kRows, 4, 8}, {kExperts, kRows, kBlocks}),
            "[checkpoint] tensor experts.down_proj_blocks: expected codes of blocks of 32 values, "
            "got 2 x 4 x 4 x 8");
  EXPECT_EQ(error({kExperts, kRows, kBlocks, 16}, {kExperts, kRows * kBlocks}),
            "[checkpoint] tensor experts.down_proj_scales: expected 2 x 4 x 2 of U8, got 2 x 8 of "
            "U8");
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  writer.add_raw("x_blocks", {1, 1, 1, 16}, "U8", std::vector<std::byte>(16));
  writer.write(folder / "model.safetensors");
  EXPECT_THAT(Checkpoint::open(folder.path())->tensor("x_blocks").status().message(),
              HasSubstr("tensor x_blocks: expected scales beside its codes in MXFP4, got none"));
}

}  // namespace
}  // namespace pagoda
