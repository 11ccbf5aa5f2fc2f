#include "serving/embedding_format.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/gguf_writer.h"
#include "tests/support/source_path.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

const std::string kTinyLlama = testing::source_path("tests/golden/data/tiny-llama");

class EmbeddingFormatTest : public ::testing::Test {
 protected:
  EmbeddingFormatTest() {
    for (const char* name : {"config.json", "model.safetensors"})
      std::filesystem::create_symlink(kTinyLlama + "/" + name, folder_ / name);
  }

  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }
  // The three modules as sentence-transformers 6 lists them; older ones have other packages.
  void write_modules(const std::string& pooling) {
    write("modules.json", R"([
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
    write("1_Pooling/config.json", pooling);
  }
  Result<std::optional<EmbeddingFormat>> read() {
    return read_embedding_format(*Checkpoint::open(folder_.path()));
  }
  void expect_refused(StatusCode code, const std::string& says) {
    const Status status = read().status();
    EXPECT_EQ(status.code(), code);
    EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
  }

  testing::TemporaryFolder folder_;
};

TEST_F(EmbeddingFormatTest, AFolderThatSaysNothingHasNone) {
  const auto format = read();
  ASSERT_TRUE(format.ok()) << format.status().message();
  EXPECT_FALSE(format->has_value());
}

TEST_F(EmbeddingFormatTest, AFolderSaysItByNameOrByFlags) {
  write_modules(R"({"embedding_dimension": 64, "pooling_mode": "cls", "include_prompt": true})");
  EXPECT_EQ((**read()).pooling, Pooling::kFirst);
  EXPECT_TRUE((**read()).normalizes);
  write_modules(R"({"word_embedding_dimension": 64, "pooling_mode_cls_token": false,
                    "pooling_mode_mean_tokens": true, "pooling_mode_lasttoken": false})");
  EXPECT_EQ((**read()).pooling, Pooling::kMean);
  write("modules.json",
        R"([{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])");
  EXPECT_FALSE((**read()).normalizes);
}

TEST_F(EmbeddingFormatTest, WhatNothingComputesIsRefusedByName) {
  write_modules(R"({"pooling_mode": "weightedmean"})");
  expect_refused(StatusCode::kUnsupported,
                 "1_Pooling/config.json: the pooling weightedmean is not");
  write_modules(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})");
  expect_refused(StatusCode::kUnsupported, "the pooling cls+mean is not");
  write("modules.json", R"([{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])");
  expect_refused(StatusCode::kUnsupported, "sentence_transformers.models.Dense");
}

TEST_F(EmbeddingFormatTest, WhatIsNoListOfModulesIsTold) {
  for (const char* text : {"", "{}", "[1]", "[", R"([{"type": 5}])"}) {
    write("modules.json", text);
    EXPECT_FALSE(read().ok()) << text;
  }
  for (const char* path : {"../1_Pooling", "/etc", "1_Pooling/../.."}) {
    write("modules.json", std::string(R"([{"type": "x.Pooling", "path": ")") + path + R"("}])");
    expect_refused(StatusCode::kDataLoss, "expected a folder of the checkpoint's");
  }
  write("modules.json", R"([{"type": "x.Pooling", "path": "absent"}])");
  expect_refused(StatusCode::kNotFound, "absent/config.json");
}

TEST_F(EmbeddingFormatTest, AGgufFileSaysItByNumber) {
  const Pooling poolings[] = {Pooling::kNone, Pooling::kMean, Pooling::kFirst, Pooling::kLast};
  for (std::uint32_t type = 0; type < 5; ++type) {
    testing::GgufWriter writer;
    writer.set("general.architecture", "llama").set("llama.pooling_type", type);
    testing::write_file(folder_ / "a.gguf", writer.bytes());
    const auto format = read_embedding_format(*Checkpoint::open(folder_ / "a.gguf"));
    ASSERT_TRUE(format.ok()) << format.status().message();
    EXPECT_EQ(format->has_value(), type > 0 && type < 4);
    if (*format) {
      EXPECT_EQ((*format)->pooling, poolings[type]);
      EXPECT_EQ(gguf_pooling_type(poolings[type]), type);
    }
  }
  testing::GgufWriter writer;
  writer.set("general.architecture", "llama").set("llama.pooling_type", 5u);
  testing::write_file(folder_ / "a.gguf", writer.bytes());
  EXPECT_EQ(read_embedding_format(*Checkpoint::open(folder_ / "a.gguf")).status().code(),
            StatusCode::kUnsupported);
}

}  // namespace
}  // namespace pagoda
