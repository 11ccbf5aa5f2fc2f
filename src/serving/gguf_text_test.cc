#include "serving/gguf_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"
#include "tests/support/log_capture.h"
#include "text/tokenizer.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int32_t kPlain = 1;

testing::GgufWriter vocabulary(const std::vector<std::string>& tokens) {
  testing::GgufWriter writer;
  writer.set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", "gpt-2");
  writer.set("tokenizer.ggml.tokens", tokens);
  writer.set("tokenizer.ggml.token_type", std::vector<std::int32_t>(tokens.size(), kPlain));
  writer.set("tokenizer.ggml.merges", std::vector<std::string>{});
  return writer;
}

Result<GgufVocabulary> read(const testing::GgufWriter& writer) {
  const std::vector<std::byte> bytes = writer.bytes();
  return read_gguf_vocabulary(**GgufFile::parse(bytes, nullptr));
}

TEST(GgufTextTest, AnEndThatTheFileCallsPlainTextIsOneSpecialToken) {
  const auto read_tokens = read(vocabulary({"a", "b", "<|im_end|>"}));
  ASSERT_TRUE(read_tokens.ok()) << read_tokens.status().message();
  const auto tokenizer = Tokenizer::from_gguf(*read_tokens);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_THAT(*(*tokenizer)->encode("ab<|im_end|>a"), ElementsAre(0, 1, 2, 0));
  EXPECT_TRUE((*tokenizer)->is_special(2));
}

TEST(GgufTextTest, TheModelsNameIsTheTokenizersToo) {
  const auto ids = [](const char* name) {
    testing::GgufWriter writer = vocabulary({"a", "Ċ", "<|im_end|>"});
    writer.set("general.name", name);
    return (*Tokenizer::from_gguf(*read(writer)))->encode("<|im_end|>\na").value();
  };
  EXPECT_THAT(ids("Phi 3 Mini"), ElementsAre(2, 0));
  EXPECT_THAT(ids("Phi 4"), ElementsAre(2, 1, 0));
  testing::GgufWriter numbered = vocabulary({"a"});
  numbered.set("general.name", std::uint32_t{3});
  EXPECT_EQ(read(numbered).status().code(), StatusCode::kDataLoss);
}

TEST(GgufTextTest, SpecialIdsBeyondTheVocabularyAreDropped) {
  testing::GgufWriter writer = vocabulary({"a", "b"});
  writer.set("tokenizer.ggml.bos_token_id", std::uint32_t{4294967295});
  writer.set("tokenizer.ggml.eos_token_id", std::uint32_t{2});
  writer.set("tokenizer.ggml.unknown_token_id", std::int32_t{-1});
  const auto read_tokens = read(writer);
  ASSERT_TRUE(read_tokens.ok()) << read_tokens.status().message();
  EXPECT_FALSE(read_tokens->bos_token_id || read_tokens->eos_token_id ||
               read_tokens->unknown_token_id);
  EXPECT_TRUE(Tokenizer::from_gguf(*read_tokens).ok());
}

TEST(GgufTextTest, TokensThatMergesMakeNeedThem) {
  for (const bool has_key : {true, false}) {
    testing::GgufWriter writer;
    writer.set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", "gpt-2");
    writer.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "é", "ab"});
    if (has_key) writer.set("tokenizer.ggml.merges", std::vector<std::string>{});
    const Status status = read(writer).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("tokenizer.ggml.merges: expected the merges that make "
                                            "tokens such as 'ab'"));
  }
  testing::GgufWriter whole = vocabulary({"a", "é", "<|im_end|>"});
  EXPECT_TRUE(read(whole).ok());
}

TEST(GgufTextTest, AFileThatDoesNotSayHowTextsAreCutIsTold) {
  const auto warnings = [](const char* pre) {
    testing::GgufWriter writer;
    writer.set("tokenizer.ggml.model", "gpt2");
    if (pre != nullptr) writer.set("tokenizer.ggml.pre", pre);
    writer.set("tokenizer.ggml.tokens", std::vector<std::string>{"a"});
    const testing::LogCapture log;
    EXPECT_TRUE(read(writer).ok());
    return log.text();
  };
  EXPECT_THAT(warnings(nullptr), HasSubstr("tokenizer.ggml.pre is missing"));
  EXPECT_EQ(warnings("gpt-2"), "");
}

}  // namespace
}  // namespace pagoda
