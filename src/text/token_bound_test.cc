#include "text/token_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "text/golden_files.h"

namespace pagoda {
namespace {

std::shared_ptr<const Tokenizer> real_tokenizer() {
  return *Tokenizer::from_gguf(golden_vocabulary(read_golden("smollm2.json")["vocabulary"]));
}

std::string words(std::mt19937& random, std::size_t num_bytes) {
  static constexpr std::string_view kParts[] = {
      "the ",      "cat",   " sat on",      "\n\n",       "    ",         "é",
      "漢字",      "👋🏽",  "12345",        "<|im_end|>", "<|im_start|>", "\t",
      "camelCase", " \n  ", "....!!!!....", "aaaaaaa"};
  std::string text;
  while (text.size() < num_bytes) text += kParts[random() % std::size(kParts)];
  return text;
}

// A text that surely_exceeds() refuses always has too many tokens.
TEST(TokenBound, ATextHasMoreTokensThanItSaysThatItHas) {
  std::mt19937 random(7);
  int num_refused = 0;
  for (const auto& tokenizer : {real_tokenizer(), *Tokenizer::from_folder(test_data() / "tiny")}) {
    for (int i = 0; i < 60; ++i) {
      std::string text = words(random, random() % 40'000);
      if (i % 5 == 0) text = std::string(random() % 40'000, " a\n"[i % 3]);
      const int num_tokens = static_cast<int>(tokenizer->encode(text).value().size());
      const int limit = static_cast<int>(random() % (num_tokens + 2));
      if (surely_exceeds(*tokenizer, text, limit).value()) {
        EXPECT_GT(num_tokens, limit) << text;
        ++num_refused;
      }
    }
  }
  EXPECT_GT(num_refused, 20);
}

TEST(TokenBound, AFarTooLongTextIsToldByItsBeginning) {
  std::mt19937 random(8);
  const auto tokenizer = real_tokenizer();
  // The invalid byte after the beginning is an error only if the search reads that far.
  const std::string text = words(random, 20'000) + "\xff" + words(random, 4 << 20);
  EXPECT_FALSE(surely_exceeds(*tokenizer, text, 40'000).ok());
  EXPECT_TRUE(surely_exceeds(*tokenizer, text, 1000).value());
}

TEST(TokenBound, OfATextThatMayFitItSaysNothing) {
  const auto tokenizer = real_tokenizer();
  EXPECT_FALSE(surely_exceeds(*tokenizer, "the cat sat on the mat", 100).value());
  EXPECT_FALSE(surely_exceeds(*tokenizer, "", 0).value());
  // The text is long, but each of its tokens has many bytes.
  std::string long_tokens;
  for (int i = 0; i < 20'000; ++i) long_tokens += "<|im_start|>";
  ASSERT_EQ(tokenizer->encode(long_tokens).value().size(), 20'000U);
  EXPECT_FALSE(surely_exceeds(*tokenizer, long_tokens, 20'000).value());
  EXPECT_TRUE(surely_exceeds(*tokenizer, long_tokens, 15'000).value());
}

}  // namespace
}  // namespace pagoda
