#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "text/golden_files.h"

namespace pagoda {
namespace {

// Returns whether the text is valid UTF-8 made of whole characters.
bool is_utf8(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore) ==
         json_text(nlohmann::json(text));
}

std::shared_ptr<const Tokenizer> byte_level() {
  return *Tokenizer::from_folder(test_data() / "tiny");
}

std::shared_ptr<const Tokenizer> sentence_piece() {
  return *Tokenizer::from_gguf(golden_vocabulary(read_golden("sentence_piece.json")["vocabulary"]));
}

std::string push_all(Detokenizer& stream, const Tokenizer& tokenizer,
                     const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += stream.push(*tokenizer.token_to_id(token));
  return text;
}

TEST(DetokenizerTest, PiecesJoinedAreTheDecodedText) {
  for (const auto& tokenizer : {byte_level(), sentence_piece()}) {
    std::mt19937 random(3);
    for (int round = 0; round < 500; ++round) {
      const bool skip_special_tokens = round % 2 == 0;
      Detokenizer stream(tokenizer, {.skip_special_tokens = skip_special_tokens});
      std::vector<int> ids(random() % 20);
      // Half of the rounds use only byte tokens and single bytes, which split characters.
      const int limit = round % 4 < 2 ? tokenizer->vocab_size() : 262;
      std::string text;
      for (int& id : ids) {
        id = static_cast<int>(random() % limit);
        const std::string piece = stream.push(id);
        EXPECT_TRUE(is_utf8(piece));
        text += piece;
      }
      text += stream.finish();
      EXPECT_EQ(text, *tokenizer->decode(ids, skip_special_tokens)) << "seed 3, round " << round;
    }
  }
}

TEST(DetokenizerTest, CharactersComeWhole) {
  for (const auto& tokenizer : {byte_level(), sentence_piece()}) {
    const std::string text = "𐐷é漢🙂x";
    const auto ids = *tokenizer->encode(text, {.add_special_tokens = false});
    ASSERT_GT(ids.size(), 5) << "expected characters of several tokens";
    Detokenizer stream(tokenizer, {});
    std::string joined;
    for (const int id : ids) {
      const std::string piece = stream.push(id);
      EXPECT_TRUE(is_utf8(piece));
      joined += piece;
      EXPECT_EQ(joined, text.substr(0, joined.size())) << "nothing that comes is taken back";
    }
    EXPECT_EQ(joined + stream.finish(), text);
  }
}

TEST(DetokenizerTest, CompleteCharactersAreNotHeldBack) {
  const auto tokenizer = sentence_piece();
  Detokenizer stream(tokenizer, {.continues_text = true});
  EXPECT_EQ(stream.push(*tokenizer->token_to_id("<0x0A>")), "\n") << "a newline is one byte token";
  EXPECT_EQ(stream.push(*tokenizer->token_to_id("<0xC3>")), "");
  EXPECT_EQ(stream.push(*tokenizer->token_to_id("<0xA9>")), "é");
}

TEST(DetokenizerTest, WhatIsNeverCompletedBecomesReplacements) {
  const auto pieces = sentence_piece();
  Detokenizer stream(pieces, {.continues_text = true});
  EXPECT_EQ(push_all(stream, *pieces, {"<0xF0>", "<0x9F>"}), "");
  EXPECT_EQ(stream.finish(), "��") << "one for each byte token";
  EXPECT_EQ(push_all(stream, *pieces, {"<0xF0>", "▁"}), "� ");

  const auto bytes = byte_level();
  Detokenizer byte_stream(bytes, {});
  EXPECT_EQ(push_all(byte_stream, *bytes, {"ð", "Ł"}), "");
  EXPECT_EQ(byte_stream.finish(), "�") << "one for the bytes of a character";
  EXPECT_EQ(byte_stream.push(*bytes->token_to_id("x")), "x");
}

TEST(DetokenizerTest, TheLeadingSpaceGoesOnlyWhereATextStarts) {
  const auto tokenizer = sentence_piece();
  const auto ids = *tokenizer->encode("the of", {.add_special_tokens = false});
  const auto text = [&](bool continues) {
    Detokenizer stream(tokenizer, {.continues_text = continues});
    std::string joined;
    for (const int id : ids) joined += stream.push(id);
    return joined + stream.finish();
  };
  EXPECT_EQ(text(false), "the of");
  EXPECT_EQ(text(true), " the of");
}

TEST(DetokenizerTest, IdsWithoutATokenAddNothing) {
  Detokenizer stream(byte_level(), {});
  for (const int id : {-1, 512, 1 << 30}) EXPECT_EQ(stream.push(id), "");
  EXPECT_EQ(stream.finish(), "");
}

}  // namespace
}  // namespace pagoda
