// Tests texts of many pieces: where Tokenizer cuts them, and that the cuts do not change the
// tokens.
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "tests/support/temporary_folder.h"
#include "text/golden_files.h"
#include "text/tokenizer.h"

namespace pagoda {
namespace {

std::vector<int> encode_inner(const Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text, {.add_special_tokens = false}).value();
}

// Returns random words, numbers, line ends and rare characters.
std::string random_words(std::mt19937& random, std::size_t num_bytes) {
  static constexpr std::string_view kParts[] = {
      " the",  "cat ",  "It's",  "we'LL",   "\n",         "\n\n",   "\r\n",   "  ",   "\t",
      "12345", "3.14",  "naïve", "e\u0301", "漢字。",     "かな",   "ि",      "👋🏽", "...",
      "/",     "$x+=1", "x",     "A\u030a", "<|im_end|>", "\u00a0", "\u2028", "Ж",    "ß",
      "ǅ",     "𐐀",     "½",     "_",       "'s",         " '",     "\"",     "ªº"};
  std::string text;
  while (text.size() < num_bytes) text += kParts[random() % std::size(kParts)];
  return text;
}

// Pre-tokenizers that always cut between words.
constexpr const char* kWordCutters[] = {
    "gpt-2",    "default",   "smollm", "falcon", "dbrx",     "llama-bpe",   "qwen2",
    "qwen35",   "stablelm2", "tekken", "gpt-4o", "youtu",    "deepseek-v3", "spark2_5",
    "minicpm5", "jais-2",    "laguna", "afmoe",  "ufakzeka", "bailingmoe",  "seed-coder",
    "tiny_aya", "kimi-k2",   "bloom",  "viking", "chameleon"};

// Returns a vocabulary whose best merges cross the places where long texts are cut. Only a cut by
// the pre-tokenizer prevents these merges.
GgufVocabulary vocabulary_across_cuts() {
  GgufVocabulary vocabulary = golden_vocabulary(read_golden("pre_tokenizers.json")["vocabulary"]);
  std::vector<std::string> merges;
  for (char letter = 'A'; letter <= 'z'; letter += letter == 'Z' ? 'a' - 'Z' : 1) {
    merges.push_back(std::string(1, letter) + " Ġ");
    merges.push_back(std::string("Ċ ") + letter);
  }
  for (const char* lead_byte : {"Ã", "ã", "æ", "à"})
    merges.push_back(std::string("Ċ ") + lead_byte);
  for (const std::string& merge : merges) {
    std::string token = merge;
    std::erase(token, ' ');
    vocabulary.tokens.push_back(token);
    vocabulary.token_types.push_back(1);
  }
  vocabulary.merges.insert(vocabulary.merges.begin(), merges.begin(), merges.end());
  return vocabulary;
}

TEST(LongTexts, TheTokensOfPiecesAreThoseOfTheWholeText) {
  GgufVocabulary vocabulary = vocabulary_across_cuts();
  static constexpr std::string_view kEnds[] = {"x",   "E",    "can't", "1.\n",
                                               "é\n", "。\n", "(\n",   "a\n"};
  static constexpr std::string_view kBegins[] = {" a", " The", " ll", "x", "Ma", "é", "が", "ि"};
  std::string words;
  while (words.size() < (300U << 10)) words += "the cat\n";
  std::mt19937 random(12);
  for (const char* pre : kWordCutters) {
    vocabulary.pre = pre;
    const auto tokenizer = *Tokenizer::from_gguf(vocabulary);
    EXPECT_LT(*tokenizer->longest_piece(words), words.size()) << pre;
    for (int i = 0; i < 400; ++i) {
      const size_t end = random() % std::size(kEnds);
      const size_t begin = random() % 3 + (end < 3 ? 0 : 3 + random() % 3);
      const std::string left = random_words(random, random() % 40) + std::string(kEnds[end]);
      const std::string right = std::string(kBegins[begin]) + random_words(random, random() % 40);
      std::vector<int> ids = encode_inner(*tokenizer, left);
      for (const int id : encode_inner(*tokenizer, right)) ids.push_back(id);
      EXPECT_EQ(encode_inner(*tokenizer, left + right), ids)
          << pre << ", seed 12, text " << i << ": " << left << "|" << right;
    }
  }
}

TEST(LongTexts, ALongTextIsTokenisedInPieces) {
  constexpr size_t kPieceBytes = 256 << 10;
  GgufVocabulary vocabulary = vocabulary_across_cuts();
  vocabulary.bos_token_id = 5;
  vocabulary.eos_token_id = 6;
  std::mt19937 random(13);
  for (const char* pre : {"gpt-2", "llama-bpe", "falcon"}) {
    vocabulary.pre = pre;
    const std::string text = random_words(random, 2 * kPieceBytes);
    const auto tokenizer = *Tokenizer::from_gguf(vocabulary);
    EXPECT_LE(*tokenizer->longest_piece(text), kPieceBytes) << pre;
    // An added token that spans two words prevents cuts, so each text stays whole.
    GgufVocabulary with_phrase = vocabulary;
    with_phrase.tokens.push_back("no such phrase");
    with_phrase.token_types.push_back(4);
    const auto whole = *Tokenizer::from_gguf(with_phrase);
    EXPECT_EQ(*whole->longest_piece(text), text.size());
    EXPECT_TRUE(tokenizer->encode(text).value() == whole->encode(text).value())
        << pre << ", seed 13";
  }
}

TEST(LongTexts, OnlyTextsWithoutWordsHaveLongerPieces) {
  GgufVocabulary vocabulary = vocabulary_across_cuts();
  vocabulary.pre = "gpt-2";
  const auto tokenizer = *Tokenizer::from_gguf(vocabulary);
  const std::string digits(1 << 20, '7');
  EXPECT_EQ(*tokenizer->longest_piece(digits), digits.size());
  EXPECT_EQ(*tokenizer->longest_piece(digits + "\nx y" + digits), digits.size() + 2);
  EXPECT_EQ(*tokenizer->longest_piece(""), 0U);
  EXPECT_FALSE(tokenizer->longest_piece("\xff").ok());
  // SentencePiece puts a space before each text, so a cut would add a space.
  const auto pieces =
      *Tokenizer::from_gguf(golden_vocabulary(read_golden("sentence_piece.json")["vocabulary"]));
  std::mt19937 random(14);
  const std::string text = random_words(random, 300'000);
  EXPECT_EQ(*pieces->longest_piece(text), text.size());
}

// The post-processor's tokens surround the whole text, not each piece.
TEST(LongTexts, ALongTextHasOneBeginAndOneEnd) {
  auto json = read_golden("tiny/tokenizer.json");
  json["post_processor"] = parse_ordered_json(
      R"({"type": "TemplateProcessing", "pair": [],
          "single": [{"SpecialToken": {"id": "<|bos|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                     {"SpecialToken": {"id": "<|eos|>", "type_id": 0}}],
          "special_tokens": {"<|bos|>": {"id": "<|bos|>", "ids": [0], "tokens": ["<|bos|>"]},
                             "<|eos|>": {"id": "<|eos|>", "ids": [1], "tokens": ["<|eos|>"]}}})");
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "tokenizer.json") << json;
  const auto tokenizer = *Tokenizer::from_folder(folder.path());
  std::string text = "<|eos|>";
  while (text.size() < (600U << 10)) text += "the cat and the dog ";
  std::vector<int> expected = tokenizer->encode(text, {.add_special_tokens = false}).value();
  expected.insert(expected.begin(), 0);
  expected.push_back(1);
  EXPECT_TRUE(tokenizer->encode(text).value() == expected);
}

}  // namespace
}  // namespace pagoda
