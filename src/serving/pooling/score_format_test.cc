#include "serving/pooling/score_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "serving/pooling/read_score_format.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ScoreFormatTest : public ::testing::Test {
 protected:
  ScoreFormatTest() {
    config_.architecture = "qwen3";
    config_.hidden_size = 2;
    config_.has_score_head = true;
  }

  Result<std::optional<ScoreFormat>> read(const std::string& path) {
    return read_score_format(Checkpoint::open(path).value(), config_);
  }
  Result<std::optional<ScoreFormat>> read_folder(const std::string& config,
                                                 const std::vector<float>& rows = {0.5F, -2}) {
    testing::SafetensorsWriter()
        .add("score.weight", {static_cast<std::int64_t>(rows.size() / 2), 2}, WeightFormat::kBF16,
             rows)
        .write(folder_ / "model.safetensors");
    std::ofstream(folder_ / "config.json") << config;
    return read(folder_.path());
  }
  Result<std::optional<ScoreFormat>> read_gguf(const std::vector<float>& rows,
                                               const std::string& prompt) {
    testing::GgufWriter writer;
    writer.set("general.architecture", "qwen3").set("qwen3.pooling_type", 4u);
    if (!prompt.empty()) writer.set("tokenizer.chat_template.rerank", prompt);
    writer.add_tensor("cls.output.weight", {static_cast<std::int64_t>(rows.size() / 2), 2},
                      WeightFormat::kF16, rows);
    testing::write_file(folder_ / "a.gguf", writer.bytes());
    return read(folder_ / "a.gguf");
  }

  testing::TemporaryFolder folder_;
  ModelConfig config_;
};

constexpr const char* kIdentity =
    R"({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}})";

TEST_F(ScoreFormatTest, AFolderSaysWhatIsDoneToTheLogit) {
  const auto plain = read_folder("{}");
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_THAT((*plain)->weights, ElementsAre(0.5F, -2));
  EXPECT_EQ((*plain)->prompt, "");
  const float hidden[] = {3, 1};
  EXPECT_DOUBLE_EQ((*plain)->score(hidden), 1 / (1 + std::exp(0.5)));
  const auto identity = read_folder(kIdentity);
  EXPECT_DOUBLE_EQ((*identity)->score(hidden), -0.5);
  EXPECT_EQ((**read_folder(R"({"sbert_ce_default_activation_function":
                               "torch.nn.modules.activation.Sigmoid"})"))
                .activation,
            ScoreFormat::Activation::kSigmoid);
}

TEST_F(ScoreFormatTest, AGgufFileHasOneClassOrYesAndNo) {
  const auto yes_or_no = read_gguf({1, 0, 0, 1}, "<Query>: {query}\n<Document>: {document}\n");
  ASSERT_TRUE(yes_or_no.ok()) << yes_or_no.status().message();
  const float hidden[] = {3, 1};
  EXPECT_DOUBLE_EQ((*yes_or_no)->score(hidden), 1 / (1 + std::exp(-2.0)));
  EXPECT_EQ((*yes_or_no)->prompt, "<Query>: {query}\n<Document>: {document}\n");
  const auto one = read_gguf({1, 0}, "");
  EXPECT_DOUBLE_EQ((*one)->score(hidden), 1 / (1 + std::exp(-3.0)));
}

TEST_F(ScoreFormatTest, OtherHeadsAreRefused) {
  const auto expect = [](const Result<std::optional<ScoreFormat>>& read, StatusCode code,
                         const char* says) {
    EXPECT_EQ(read.status().code(), code);
    EXPECT_THAT(read.status().message(), HasSubstr(says));
  };
  expect(read_folder("{}", {1, 2, 3, 4}), StatusCode::kUnsupported, "a head of one class");
  expect(read_folder("{}", {1, std::numeric_limits<float>::infinity()}), StatusCode::kDataLoss,
         "expected finite numbers");
  expect(read_folder(R"({"sentence_transformers": {"activation_fn": "torch.nn.Tanh"}})"),
         StatusCode::kUnsupported, "torch.nn.Tanh");
  expect(read_gguf({1, 2, 3, 4, 5, 6}, ""), StatusCode::kUnsupported, "got 3");
  expect(read_gguf({1, 2}, "only {query}"), StatusCode::kUnsupported, "{document}");
  config_.hidden_size = 3;
  expect(read_folder("{}"), StatusCode::kDataLoss, "expected a row of 3 numbers");
  config_.has_score_head = false;
  EXPECT_FALSE(read_folder("{}")->has_value());
}

TEST(ScoredPrompt, HoldsBothTextsAsTheyAre) {
  EXPECT_EQ(scored_prompt("a {query} b {document} c {query}", "{document}", "{query}{"),
            "a {document} b {query}{ c {document}");
}

}  // namespace
}  // namespace pagoda
