#include "model/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kConfig = R"({
  "model_type": "llama", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 112,
  "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 2048,
  "eos_token_id": 1})";

class ModelConfigTest : public ::testing::Test {
 protected:
  ModelConfigTest() {
    testing::SafetensorsWriter()
        .add("model.norm.weight", {2}, WeightFormat::kF32, std::vector<float>{1, 1})
        .write(folder_ / "model.safetensors");
  }
  void write(const std::string& name, std::string_view text) {
    testing::write_file(folder_ / name, std::as_bytes(std::span(text.data(), text.size())));
  }
  Checkpoint open() const { return *Checkpoint::open(folder_.path()); }

  testing::TemporaryFolder folder_;
};

TEST_F(ModelConfigTest, ReadsAFolderWithAndWithoutGenerationConfig) {
  write("config.json", kConfig);
  EXPECT_THAT(read_model_config(open())->eos_token_ids, ElementsAre(1));
  EXPECT_FALSE(read_generation_defaults(open())->temperature.has_value());
  write("generation_config.json", R"({"eos_token_id": [2, 3], "temperature": 0.5})");
  EXPECT_THAT(read_model_config(open())->eos_token_ids, ElementsAre(2, 3));
  EXPECT_EQ(read_generation_defaults(open())->temperature, 0.5f);
}

// Returns tie_word_embeddings as read from a checkpoint that sets it but also stores `head`.
bool is_tied(const std::vector<float>& head) {
  const testing::TemporaryFolder folder;
  const std::vector<float> embedding{1, 2, 3, 4};
  testing::SafetensorsWriter()
      .add("model.embed_tokens.weight", {2, 2}, WeightFormat::kBF16, embedding)
      .add("lm_head.weight", {2, 2}, WeightFormat::kBF16, head)
      .write(folder / "model.safetensors");
  std::string config(kConfig);
  config.replace(config.rfind('}'), 1, ", \"tie_word_embeddings\": true}");
  testing::write_file(folder / "config.json", std::as_bytes(std::span(config)));
  const auto read = read_model_config(*Checkpoint::open(folder.path()));
  PAGODA_CHECK(read.ok(), read.status().message());
  return read->tie_word_embeddings;
}

TEST(TiedEmbeddingsTest, AStoredHeadOfOtherValuesIsUsedWhateverTheFlagSays) {
  EXPECT_TRUE(is_tied({1, 2, 3, 4}));
  EXPECT_FALSE(is_tied({1, 2, 3, 5}));
}

TEST_F(ModelConfigTest, AMissingConfigIsNamed) {
  const Status status = read_model_config(open()).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("config.json"));
}

TEST_F(ModelConfigTest, BrokenFilesAreNamed) {
  write("config.json", "");
  EXPECT_THAT(read_model_config(open()).status().message(), HasSubstr("config.json"));
  write("config.json", kConfig);
  for (const char* text : {"", "{", "[1]"}) {
    write("generation_config.json", text);
    const Status status = read_model_config(open()).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("generation_config.json"));
    EXPECT_EQ(read_generation_defaults(open()).status().code(), StatusCode::kDataLoss);
  }
}

TEST_F(ModelConfigTest, AnEnormousConfigIsRefusedUnread) {
  write("config.json", std::string((16 << 20) + 1, ' '));
  const Status status = read_model_config(open()).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("expected at most 16777216 bytes"));
}

}  // namespace
}  // namespace pagoda
