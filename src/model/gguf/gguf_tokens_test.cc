#include "model/gguf/gguf_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/gguf_writer.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kPlain = 1;
constexpr int kControl = 3;
constexpr int kUserDefined = 4;

// Reads tokens and their types; a token's id is its index in the list.
Result<GgufTokens> read(const std::vector<std::pair<std::string, int>>& tokens,
                        const std::vector<std::pair<std::string, std::uint32_t>>& keys = {}) {
  std::vector<std::string> texts;
  std::vector<std::int32_t> types;
  for (const auto& [text, type] : tokens) {
    texts.push_back(text);
    types.push_back(type);
  }
  testing::GgufWriter writer;
  writer.set("tokenizer.ggml.tokens", texts).set("tokenizer.ggml.token_type", types);
  for (const auto& [key, id] : keys) writer.set("tokenizer.ggml." + key, id);
  const std::vector<std::byte> bytes = writer.bytes();
  return read_gguf_tokens(**GgufFile::parse(bytes, nullptr), static_cast<int>(tokens.size()));
}

TEST(GgufTokensTest, AnEndThatTheFileCallsPlainTextIsAControlTokenAndEndsTheText) {
  const auto tokens = read({{"a", kPlain}, {"<|im_end|>", kPlain}, {"<|im_start|>", kPlain}});
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  EXPECT_THAT(tokens->types, ElementsAre(kPlain, kControl, kPlain));
  EXPECT_THAT(tokens->end_ids, ElementsAre(1));
}

TEST(GgufTokensTest, TheKeysEndsComeFirstAndEachOnce) {
  const auto tokens = read(
      {{"<|endoftext|>", kControl}, {"</s>", kControl}, {"x", kPlain}, {"<|eot_id|>", kControl}},
      {{"eos_token_id", 1}, {"eot_token_id", 2}});
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  EXPECT_THAT(tokens->end_ids, ElementsAre(1, 2, 0, 3));
}

TEST(GgufTokensTest, EndsOfTodaysFamiliesAreKnownBySpelling) {
  for (const char* text :
       {"<|flush|>", "<|calls|>", "[EOT]", "[EOS]", "<eos>", "<turn|>", "<|tool_response>",
        "<｜end▁of▁sentence｜>", "[e~[", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"}) {
    EXPECT_THAT(read({{"a", kPlain}, {text, kControl}})->end_ids, ElementsAre(1)) << text;
  }
  for (const char* text : {"<|fim_prefix|>", "<|im_start|>", "<pad>", "<s>"}) {
    EXPECT_THAT(read({{"a", kPlain}, {text, kControl}})->end_ids, IsEmpty()) << text;
  }
}

TEST(GgufTokensTest, AnEndOfAPartEndsNothingBesideTheEndOfTheWhole) {
  const auto harmony =
      read({{"<|end|>", kControl}, {"<|return|>", kControl}, {"<|call|>", kControl}},
           {{"eos_token_id", 1}, {"eot_token_id", 0}});
  EXPECT_THAT(harmony->end_ids, ElementsAre(1, 2));
  EXPECT_THAT(harmony->types, ElementsAre(kUserDefined, kControl, kControl));
  EXPECT_THAT(read({{"<|end|>", kControl}, {"<|return|>", kControl}})->end_ids, ElementsAre(1));
  EXPECT_THAT(
      read({{"<|end|>", kControl}, {"<|flush|>", kControl}, {"<|calls|>", kControl}})->end_ids,
      ElementsAre(1, 2));
  EXPECT_THAT(read({{"<|end|>", kControl}, {"<|call|>", kControl}})->end_ids, ElementsAre(0, 1));
}

TEST(GgufTokensTest, GemmasStrikeTagEndsNothing) {
  const auto tokens =
      read({{"</s>", kPlain}, {"<|tool_response>", kControl}, {"<turn|>", kControl}});
  EXPECT_THAT(tokens->end_ids, ElementsAre(1, 2));
  EXPECT_THAT(tokens->types, ElementsAre(kPlain, kControl, kControl));
}

TEST(GgufTokensTest, AKeyNamesTheFillInTokenInsteadOfItsSpelling) {
  EXPECT_THAT(read({{"<PAD>", kControl}, {"b", kControl}}, {{"fim_pad_token_id", 1}})->end_ids,
              ElementsAre(1));
}

TEST(GgufTokensTest, FilesWithoutTypesHaveThemBySpelling) {
  const std::vector<std::byte> bytes =
      testing::GgufWriter()
          .set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "<|im_end|>"})
          .bytes();
  const auto tokens = read_gguf_tokens(**GgufFile::parse(bytes, nullptr), 2);
  EXPECT_THAT(tokens->types, ElementsAre(kPlain, kControl));
  EXPECT_THAT(tokens->end_ids, ElementsAre(1));
}

}  // namespace
}  // namespace pagoda
