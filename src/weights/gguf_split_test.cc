// GGUF files in several parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"
#include "weights/gguf.h"

namespace pagoda {
namespace {

using testing::GgufWriter;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

const std::vector<float> kNorm(64, 0.25f);

GgufWriter small_split_file() {
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  writer.add_tensor("token_embd.weight", {3, 64}, WeightFormat::kQ8_0,
                    std::vector<float>(192, 0.5f));
  writer.add_tensor("output_norm.weight", {64}, WeightFormat::kF32, kNorm);
  writer.add_tensor("blk.0.ffn_up.weight", {5, 32}, WeightFormat::kQ4_1,
                    std::vector<float>(160, 1.0f));
  return writer;
}

class SplitTest : public ::testing::Test {
 protected:
  static constexpr int kParts = 3;
  std::string part(int i) const { return GgufWriter::split_path(folder_ / "m", i, kParts); }
  Status open_status(const std::string& path) const { return GgufFile::open(path).status(); }

  TemporaryFolder folder_;
  std::string first_ = small_split_file().write_split(folder_ / "m", kParts);
};

TEST_F(SplitTest, TheFirstPartOpensTheOthers) {
  const auto opened = GgufFile::open(first_);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  ASSERT_EQ((*opened)->tensors().size(), 3u);
  EXPECT_EQ((*opened)->tensors()[2].name, "blk.0.ffn_up.weight");
  EXPECT_EQ(testing::dequantize(WeightFormat::kF32, (*opened)->tensors()[1].bytes), kNorm);
  std::int64_t bytes = 0;
  for (int i = 0; i < kParts; ++i) bytes += std::filesystem::file_size(part(i));
  EXPECT_EQ((*opened)->file_bytes(), bytes);
  EXPECT_EQ((*opened)->string("general.architecture").value(), "llama");
}

TEST_F(SplitTest, AMissingPartIsNamed) {
  std::filesystem::remove(part(1));
  const Status status = open_status(first_);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("m-00002-of-00003.gguf"));
}

TEST_F(SplitTest, ALaterPartSaysWhichToOpen) {
  const Status status = open_status(part(1));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("part 2 of 3"));
  EXPECT_THAT(status.message(), HasSubstr("-00001-of-00003.gguf"));
}

TEST_F(SplitTest, ARenamedFirstPartSaysWhatNameItNeeds) {
  std::filesystem::rename(first_, folder_ / "renamed.gguf");
  const Status status = open_status(folder_ / "renamed.gguf");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("ends in -00001-of-00003.gguf"));
}

TEST_F(SplitTest, PartsOutOfOrderAreRefused) {
  std::filesystem::copy_file(part(2), part(1), std::filesystem::copy_options::overwrite_existing);
  const Status status = open_status(first_);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("expected part 2 of 3, got part 3 of 3"));
}

TEST_F(SplitTest, ATruncatedPartIsNamed) {
  std::filesystem::resize_file(part(2), 40);
  const Status status = open_status(first_);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("m-00003-of-00003.gguf"));
}

TEST_F(SplitTest, MissingTensorsAreCounted) {
  GgufWriter()
      .set("split.no", std::uint16_t{1})
      .set("split.count", std::uint16_t{3})
      .write(part(1));
  const Status status = open_status(first_);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("expected 3 tensors in 3 parts, got 2"));
}

}  // namespace
}  // namespace pagoda
