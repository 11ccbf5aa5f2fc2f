#include "serving/pooling/sentence_transformers_format.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

class SentenceTransformersFormatTest : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }
  // Writes three modules as sentence-transformers 6 does; older versions name other packages.
  void write_modules(const std::string& pooling) {
    write("modules.json", R"([
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
    write("1_Pooling/config.json", pooling);
  }
  Result<std::optional<EmbeddingFormat>> read() {
    return read_sentence_transformers_format(folder_.path());
  }
  EmbeddingFormat format() {
    const auto format = read();
    EXPECT_TRUE(format.ok()) << format.status().message();
    return format.ok() && *format ? **format : EmbeddingFormat();
  }
  void expect_refused(StatusCode code, const std::string& says) {
    const Status status = read().status();
    EXPECT_EQ(status.code(), code);
    EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
  }

  testing::TemporaryFolder folder_;
};

TEST_F(SentenceTransformersFormatTest, AFolderThatSaysNothingHasNone) {
  const auto format = read();
  ASSERT_TRUE(format.ok()) << format.status().message();
  EXPECT_FALSE(format->has_value());
}

TEST_F(SentenceTransformersFormatTest, AFolderSaysItByNameOrByFlags) {
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

TEST_F(SentenceTransformersFormatTest, WhatNothingComputesIsRefusedByName) {
  write_modules(R"({"pooling_mode": "weightedmean"})");
  expect_refused(StatusCode::kUnsupported,
                 "1_Pooling/config.json: the pooling weightedmean is not");
  write_modules(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})");
  expect_refused(StatusCode::kUnsupported, "the pooling cls+mean is not");
  write("modules.json", R"([{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])");
  expect_refused(StatusCode::kUnsupported, "sentence_transformers.models.Dense");
}

TEST_F(SentenceTransformersFormatTest, WhatIsNoListOfModulesIsTold) {
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

TEST_F(SentenceTransformersFormatTest, PromptsLengthsAndSizesAreRead) {
  write_modules(R"({"pooling_mode": "lasttoken", "include_prompt": false})");
  EXPECT_EQ(format().prompts.size(), 0U);
  EXPECT_FALSE(format().max_tokens);
  EXPECT_FALSE(format().dimensions);
  write("sentence_bert_config.json", R"({"max_seq_length": 512, "do_lower_case": false})");
  write("tokenizer_config.json", R"({"model_max_length": 128})");
  write("config_sentence_transformers.json", R"({
      "__version__": {"sentence_transformers": "5.1.0"}, "similarity_fn_name": "cosine",
      "model_type": "SentenceTransformer", "truncate_dim": 32,
      "prompts": {"query": "Find this: ", "document": "", "other": null},
      "default_prompt_name": "query"})");
  EXPECT_EQ(format().prompts.at("query"), "Find this: ");
  EXPECT_EQ(format().prompts.at("other"), "");
  EXPECT_EQ(format().default_prompt, "Find this: ");
  EXPECT_EQ(format().max_tokens, 512);
  EXPECT_EQ(format().dimensions, 32);
}

TEST_F(SentenceTransformersFormatTest, TheTokenizersLengthStandsInForTheModels) {
  write_modules(R"({"pooling_mode": "lasttoken"})");
  write("sentence_bert_config.json", R"({"max_seq_length": null})");
  write("tokenizer_config.json", R"({"model_max_length": 128})");
  EXPECT_EQ(format().max_tokens, 128);
  write("tokenizer_config.json", R"({"model_max_length": 1000000000000000019884624838656})");
  EXPECT_FALSE(format().max_tokens);
}

TEST_F(SentenceTransformersFormatTest, EveryKeyOfEveryFileIsReadOrRefusedByName) {
  write_modules(R"({"pooling_mode": "mean"})");
  const auto refuses = [&](const std::string& file, const std::string& text,
                           const std::string& says) {
    write(file, text);
    expect_refused(StatusCode::kUnsupported, file + ": " + says);
    write(file, "{}");
  };
  refuses("sentence_bert_config.json", R"({"do_lower_case": true})", "do_lower_case true is not");
  refuses("sentence_bert_config.json", R"({"model_args": {"a": 1}})", "model_args");
  refuses("sentence_bert_config.json", R"({"modality_config": {"message": {"method": "forward"}}})",
          "modality_config");
  refuses("sentence_bert_config.json", R"({"pads": 1})", "key pads is not known");
  refuses("config_sentence_transformers.json", R"({"model_type": "SparseEncoder"})", "model_type");
  refuses("config_sentence_transformers.json", R"({"task": "x"})", "key task is not known");
  refuses("2_Normalize/config.json", R"({"module_input_name": "token_embeddings"})",
          "module_input_name");
  write("config_sentence_transformers.json", R"({"prompts": {"query": "Find: "}})");
  refuses("1_Pooling/config.json", R"({"pooling_mode": "mean", "include_prompt": false})",
          "include_prompt false is not supported beside prompts");
}

TEST_F(SentenceTransformersFormatTest, ValuesOfAnotherKindAreTold) {
  write_modules(R"({"pooling_mode": "mean"})");
  for (const char* text : {R"({"max_seq_length": 0})", R"({"max_seq_length": "long"})",
                           R"({"max_seq_length": 1e12})"}) {
    write("sentence_bert_config.json", text);
    expect_refused(StatusCode::kInvalidArgument, "max_seq_length: expected");
  }
  write("sentence_bert_config.json", "{}");
  for (const char* text : {R"({"default_prompt_name": "query"})", R"({"prompts": ["a"]})",
                           R"({"prompts": {"query": 1}})", R"({"truncate_dim": -1})", "[", ""}) {
    write("config_sentence_transformers.json", text);
    EXPECT_FALSE(read().ok()) << text;
  }
}

}  // namespace
}  // namespace pagoda
