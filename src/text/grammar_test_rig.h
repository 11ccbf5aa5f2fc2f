// For tests: compiles grammars over a small vocabulary and checks which texts they accept.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "text/golden_files.h"
#include "text/grammar.h"

namespace pagoda {

// Makes a tokenizer of all bytes, some longer tokens, and control tokens. The last control token
// ends a text.
inline std::shared_ptr<const Tokenizer> make_tokenizer(
    const std::vector<std::string>& more_tokens = {},
    const std::vector<std::string>& control_tokens = {}) {
  GgufVocabulary vocabulary = golden_vocabulary(read_golden("pre_tokenizers.json")["vocabulary"]);
  vocabulary.tokens.resize(256);
  vocabulary.merges.clear();
  vocabulary.pre = "gpt-2";
  for (const char* token : {"\"}", "{\"", "true", "10", "Ġ\"", "ab", "\":"})
    vocabulary.tokens.emplace_back(token);
  vocabulary.tokens.insert(vocabulary.tokens.end(), more_tokens.begin(), more_tokens.end());
  vocabulary.token_types.assign(vocabulary.tokens.size(), 1);
  vocabulary.tokens.insert(vocabulary.tokens.end(), control_tokens.begin(), control_tokens.end());
  vocabulary.tokens.emplace_back("<end>");
  vocabulary.token_types.resize(vocabulary.tokens.size(), 3);
  vocabulary.eos_token_id = static_cast<int>(vocabulary.tokens.size()) - 1;
  return *Tokenizer::from_gguf(vocabulary);
}

class GrammarTest : public ::testing::Test {
 protected:
  Result<std::shared_ptr<const TokenMaskSource>> compile(GrammarKind kind, std::string text) {
    return compiler_.compile({.kind = kind, .text = std::move(text)});
  }
  std::unique_ptr<TokenMaskSource> start(GrammarKind kind, std::string text) {
    auto source = compile(kind, std::move(text));
    EXPECT_TRUE(source.ok()) << source.status().message();
    return source.ok() ? (*source)->clone() : nullptr;
  }
  std::string refusal(GrammarKind kind, std::string text) {
    const auto source = compile(kind, std::move(text));
    EXPECT_EQ(source.status().code(), StatusCode::kInvalidArgument);
    return source.status().message();
  }

  // Returns the number of words of a mask, one more than the vocabulary needs.
  std::size_t num_words() const { return (tokenizer_->vocab_size() + 31) / 32 + 1; }
  std::vector<int> allowed(TokenMaskSource& source) {
    std::vector<std::uint32_t> bits(num_words(), ~0u);
    const Status status = source.fill_mask(bits);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<int> ids;
    for (int id = 0; id < static_cast<int>(bits.size()) * 32; ++id) {
      if (bits[id / 32] >> id % 32 & 1) ids.push_back(id);
    }
    return ids;
  }
  bool takes(TokenMaskSource& source, std::string_view text) {
    for (const int id : tokenizer_->encode(text).value()) {
      const std::vector<int> ids = allowed(source);
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) return false;
      EXPECT_TRUE(source.accept(id).ok());
    }
    return true;
  }
  bool may_end(TokenMaskSource& source) {
    const std::vector<int> ids = allowed(source);
    return std::find(ids.begin(), ids.end(), eos()) != ids.end();
  }
  bool takes_whole(GrammarKind kind, std::string text, std::string_view answer) {
    const auto source = start(kind, std::move(text));
    return takes(*source, answer) && (source->is_stopped() || may_end(*source));
  }
  int eos() const { return *tokenizer_->eos_token_id(); }

  // Draws a random text, each token from those that the grammar allows. Returns none if the text
  // does not end.
  std::optional<std::string> random_text(TokenMaskSource& source, std::mt19937& random) {
    std::string text;
    for (int i = 0; i < 400 && !source.is_stopped(); ++i) {
      const std::vector<int> ids = allowed(source);
      if (ids.empty()) return std::nullopt;
      const int id = ids[random() % ids.size()];
      EXPECT_TRUE(source.accept(id).ok());
      if (id != eos()) text += tokenizer_->token_bytes(id).value();
    }
    if (!source.is_stopped()) return std::nullopt;
    return text;
  }

  std::shared_ptr<const Tokenizer> tokenizer_ = make_tokenizer();
  GrammarCompiler compiler_{tokenizer_, {}};
};

}  // namespace pagoda
