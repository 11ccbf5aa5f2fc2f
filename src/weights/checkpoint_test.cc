#include "weights/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/affine_writer.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/log_capture.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"
#include "weights/name_map.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using testing::GgufWriter;
using ::testing::HasSubstr;
using testing::SafetensorsWriter;
using testing::TemporaryFolder;

const std::vector<float> kValues{1, 2, 3, 4, 5, 6, 7, 8};

SafetensorsWriter folder_tensors() {
  SafetensorsWriter writer;
  writer.add("lm_head.weight", {2, 4}, WeightFormat::kF32, kValues);
  writer.add("model.embed_tokens.weight", {4, 2}, WeightFormat::kBF16, kValues);
  writer.add("model.norm.weight", {8}, WeightFormat::kF16, kValues);
  return writer;
}

std::vector<float> values_of(const HostTensor& tensor) {
  return testing::dequantize(tensor.format, tensor.bytes);
}

TEST(CheckpointTest, OpensAFolder) {
  const TemporaryFolder folder;
  folder_tensors().write(folder / "model.safetensors");
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint->folder(), folder.path());
  EXPECT_EQ(checkpoint->gguf(), nullptr);
  EXPECT_EQ(checkpoint->file_bytes(),
            static_cast<std::int64_t>(std::filesystem::file_size(folder / "model.safetensors")));
  EXPECT_THAT(checkpoint->names(),
              ElementsAre("lm_head.weight", "model.embed_tokens.weight", "model.norm.weight"));
  const auto tensor = checkpoint->tensor("model.embed_tokens.weight");
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->shape, (Shape{4, 2}));
  EXPECT_EQ(values_of(*tensor), kValues);
}

TEST(CheckpointTest, AnAdapterBesideTheWeightsIsIgnoredAloudAndRefusedAlone) {
  const TemporaryFolder folder;
  std::ofstream(folder / "adapter_config.json") << R"({"peft_type": "LORA"})";
  EXPECT_THAT(Checkpoint::open(folder.path()).status().message(),
              HasSubstr("an adapter alone (adapter_config.json) is not supported; merge it"));
  folder_tensors().write(folder / "model.safetensors");
  const testing::LogCapture log;
  EXPECT_TRUE(Checkpoint::open(folder.path()).ok());
  EXPECT_THAT(log.text(), HasSubstr("adapter_config.json is ignored: the weights beside it are "
                                    "served without the adapter"));
}

TEST(CheckpointTest, OpensAShardedFolder) {
  const TemporaryFolder folder;
  folder_tensors().write_sharded(folder.path(), 2);
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint->names().size(), 3u);
  for (const std::string& name : checkpoint->names()) {
    EXPECT_EQ(values_of(*checkpoint->tensor(name)), kValues) << name;
  }
}

TEST(CheckpointTest, AMissingShardIsNamed) {
  const TemporaryFolder folder;
  folder_tensors().write_sharded(folder.path(), 2);
  std::filesystem::remove(folder / SafetensorsWriter::shard_name(1, 2));
  const Status status = Checkpoint::open(folder.path()).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("model-00002-of-00002.safetensors"));
}

TEST(CheckpointTest, AShardThatLacksItsTensorIsNamed) {
  const TemporaryFolder folder;
  folder_tensors().write_sharded(folder.path(), 2);
  std::filesystem::copy_file(folder / SafetensorsWriter::shard_name(0, 2),
                             folder / SafetensorsWriter::shard_name(1, 2),
                             std::filesystem::copy_options::overwrite_existing);
  const Status status = Checkpoint::open(folder.path()).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("model.embed_tokens.weight in model-00002-of-00002"));
}

TEST(CheckpointTest, OpensGgufUnderTheFilesOwnNames) {
  const TemporaryFolder folder;
  const std::string path = folder / "m.gguf";
  const std::vector<float> row(32, 0.5f);
  GgufWriter()
      .add_tensor("token_embd.weight", {1, 32}, WeightFormat::kQ4_0, row)
      .add_tensor("blk.0.attn_q.weight", {2, 4}, WeightFormat::kF16, kValues)
      .add_tensor("rope_freqs.weight", {8}, WeightFormat::kF32, kValues)
      .write(path);
  const auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_NE(checkpoint->gguf(), nullptr);
  EXPECT_EQ(checkpoint->folder(), "");
  EXPECT_THAT(checkpoint->names(),
              ElementsAre("blk.0.attn_q.weight", "rope_freqs.weight", "token_embd.weight"));
  const auto tensor = checkpoint->tensor("blk.0.attn_q.weight");
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->shape, (Shape{2, 4}));
  EXPECT_EQ(values_of(*tensor), kValues);
}

TEST(CheckpointTest, RenamesGgufToCanonicalNames) {
  constexpr TensorName kOfModel[] = {{"token_embd", "model.embed_tokens"}};
  constexpr TensorName kOfLayer[] = {{"attn_q", "self_attn.q_proj"}};
  const TensorNames names = {.of_model = kOfModel, .of_layer = kOfLayer};
  const TemporaryFolder folder;
  const std::string path = folder / "m.gguf";
  GgufWriter()
      .add_tensor("token_embd.weight", {2, 4}, WeightFormat::kF16, kValues)
      .add_tensor("blk.0.attn_q.weight", {2, 4}, WeightFormat::kF16, kValues)
      .add_tensor("rope_freqs.weight", {8}, WeightFormat::kF32, kValues)
      .write(path);
  const auto renamed = Checkpoint::open(path)->renamed(names);
  ASSERT_TRUE(renamed.ok()) << renamed.status().message();
  EXPECT_THAT(renamed->names(),
              ElementsAre("model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight",
                          "rope_freqs.weight"));
  EXPECT_TRUE(renamed->tensor("model.layers.0.self_attn.q_proj.weight").ok());
  EXPECT_FALSE(renamed->has("blk.0.attn_q.weight"));
  GgufWriter()
      .add_tensor("token_embd.weight", {2, 4}, WeightFormat::kF16, kValues)
      .add_tensor("model.embed_tokens.weight", {2, 4}, WeightFormat::kF16, kValues)
      .write(path);
  const Status twice = Checkpoint::open(path)->renamed(names).status();
  EXPECT_EQ(twice.code(), StatusCode::kDataLoss);
  EXPECT_THAT(twice.message(), HasSubstr("model.embed_tokens.weight stands twice"));
}

TEST(CheckpointTest, ATensorOutlivesItsCheckpoint) {
  const TemporaryFolder folder;
  folder_tensors().write(folder / "model.safetensors");
  HostTensor tensor;
  {
    const auto checkpoint = Checkpoint::open(folder.path());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    tensor = *checkpoint->tensor("model.norm.weight");
  }
  EXPECT_EQ(values_of(tensor), kValues);
  tensor.storage->release_pages(tensor.bytes);
  EXPECT_EQ(values_of(tensor), kValues);
}

TEST(CheckpointTest, OpensTheFirstOfASplitSet) {
  const TemporaryFolder folder;
  const std::string first = GgufWriter()
                                .add_tensor("output_norm.weight", {8}, WeightFormat::kF32, kValues)
                                .add_tensor("output.weight", {1, 8}, WeightFormat::kF32, kValues)
                                .write_split(folder / "m", 2);
  const auto checkpoint = Checkpoint::open(first);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_THAT(checkpoint->names(), ElementsAre("output.weight", "output_norm.weight"));
  EXPECT_EQ(values_of(*checkpoint->tensor("output.weight")), kValues);
}

TEST(CheckpointTest, TwoPartsWithTheSameTensorAreRefused) {
  const TemporaryFolder folder;
  const std::string first = GgufWriter()
                                .add_tensor("output.weight", {1, 8}, WeightFormat::kF32, kValues)
                                .add_tensor("output.weight", {1, 8}, WeightFormat::kF32, kValues)
                                .write_split(folder / "m", 2);
  const Status status = Checkpoint::open(first).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("tensor output.weight stands twice"));
}

TEST(CheckpointTest, ATypeThatNothingReadsIsAnErrorOnceAskedFor) {
  const TemporaryFolder folder;
  const std::string path = folder / "m.gguf";
  GgufWriter()
      .add_raw_tensor("output.weight", {1, 256}, 21, std::vector<std::byte>(110))
      .add_tensor("output_norm.weight", {8}, WeightFormat::kF32, kValues)
      .write(path);
  const auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_TRUE(checkpoint->tensor("output_norm.weight").ok());
  EXPECT_TRUE(checkpoint->has("output.weight"));
  const Status status = checkpoint->tensor("output.weight").status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("tensor output.weight: IQ3_S is not supported; "));
}

const std::string kMlxQuantization =
    R"({"quantization": {"group_size": 32, "bits": 4, "lm_head": {"group_size": 64, "bits": 8}}})";

// Returns the tensors of a folder with affine groups: two matrices of different widths, a norm, and
// a bias.
SafetensorsWriter affine_tensors() {
  std::vector<float> values(2 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 16);
  SafetensorsWriter writer;
  testing::add_affine(writer, "lm_head", {.bits = 8, .group_size = 64}, {2, 64}, values);
  testing::add_affine(writer, "model.embed_tokens", {.bits = 4, .group_size = 32}, {2, 64}, values);
  writer.add("model.layers.0.self_attn.q_proj.bias", {8}, WeightFormat::kBF16, kValues);
  writer.add("model.norm.weight", {8}, WeightFormat::kF16, kValues);
  return writer;
}

void write_config(const TemporaryFolder& folder, const std::string& text) {
  testing::write_file(folder / "config.json", std::as_bytes(std::span(text)));
}

TEST(CheckpointTest, AffineGroupsAreOneMatrixEach) {
  const TemporaryFolder folder;
  write_config(folder, kMlxQuantization);
  // Writes the parts of a matrix into different files.
  affine_tensors().write_sharded(folder.path(), 4);
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_THAT(checkpoint->names(),
              ElementsAre("lm_head.weight", "model.embed_tokens.weight",
                          "model.layers.0.self_attn.q_proj.bias", "model.norm.weight"));
  EXPECT_EQ(values_of(*checkpoint->tensor("model.norm.weight")), kValues);
  for (const auto& [name, format] :
       {std::pair("lm_head.weight", "affine 8-bit, groups of 64"),
        std::pair("model.embed_tokens.weight", "affine 4-bit, groups of 32")}) {
    const auto tensor = checkpoint->tensor(name);
    ASSERT_TRUE(tensor.ok()) << tensor.status().message();
    EXPECT_EQ(tensor->shape, (Shape{2, 64}));
    EXPECT_EQ(format_name(*tensor), format);
    std::vector<float> row(64);
    dequantize_affine_row(affine_row(*tensor, 1), row.data());
    for (int i = 0; i < 64; ++i) EXPECT_NEAR(row[i], i % 16, 0.06);
    release_pages(*tensor);
  }
}

TEST(CheckpointTest, AffineGroupsNeedTheirConfig) {
  const TemporaryFolder folder;
  affine_tensors().write(folder / "model.safetensors");
  const auto error = [&folder] {
    const auto checkpoint = Checkpoint::open(folder.path());
    return checkpoint.ok() ? checkpoint->tensor("lm_head.weight").status() : checkpoint.status();
  };
  constexpr auto kNone =
      "[checkpoint] tensor lm_head.weight: expected a quantization in config.json, got none";
  EXPECT_EQ(error().message(), kNone);
  write_config(folder, "{}");
  EXPECT_EQ(error().message(), kNone);
  EXPECT_EQ(error().code(), StatusCode::kDataLoss);
  write_config(folder, R"({"quantization": {"group_size": 16, "bits": 4, "mode": "nvfp4"}})");
  EXPECT_EQ(error().code(), StatusCode::kUnsupported);
  EXPECT_THAT(error().message(), HasSubstr("mode \"nvfp4\" is not supported"));
  write_config(folder, "");
  EXPECT_EQ(error().code(), StatusCode::kDataLoss);
}

TEST(CheckpointTest, WordsWithoutScalesAreNoMatrix) {
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  writer.add_raw("lm_head.weight", {2, 8}, "U32", std::vector<std::byte>(64));
  writer.add_raw("mask", {2, 8}, "U32", std::vector<std::byte>(64));
  writer.write(folder / "model.safetensors");
  EXPECT_THAT(Checkpoint::open(folder.path())->tensor("lm_head.weight").status().message(),
              HasSubstr("tensor lm_head.weight: U32 is not supported"));
  write_config(folder, kMlxQuantization);
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(
      checkpoint->tensor("lm_head.weight").status().message(),
      "[checkpoint] tensor lm_head.weight: expected lm_head.scales beside its codes, got none");
  EXPECT_THAT(checkpoint->tensor("mask").status().message(), HasSubstr("U32 is not supported"));
}

TEST(CheckpointTest, SaysWhatIsMissing) {
  const TemporaryFolder folder;
  const Status nowhere = Checkpoint::open(folder / "nowhere").status();
  EXPECT_EQ(nowhere.code(), StatusCode::kNotFound);
  EXPECT_THAT(nowhere.message(), HasSubstr("nowhere: no such file or folder"));
  const Status empty = Checkpoint::open(folder.path()).status();
  EXPECT_EQ(empty.code(), StatusCode::kNotFound);
  EXPECT_THAT(empty.message(), HasSubstr("expected model.safetensors"));
  folder_tensors().write(folder / "model.safetensors");
  const Status tensor = Checkpoint::open(folder.path())->tensor("model.layers.0.x").status();
  EXPECT_EQ(tensor.code(), StatusCode::kNotFound);
  EXPECT_THAT(tensor.message(), HasSubstr("tensor model.layers.0.x is missing"));
  EXPECT_EQ(Checkpoint::open("").status().code(), StatusCode::kNotFound);
}

TEST(CheckpointTest, AFileThatIsNoGgufIsRefused) {
  const TemporaryFolder folder;
  testing::write_file(folder / "model.bin", std::vector<std::byte>(100, std::byte{'x'}));
  const Status status = Checkpoint::open(folder / "model.bin").status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("expected the magic \"GGUF\""));
}

}  // namespace
}  // namespace pagoda
