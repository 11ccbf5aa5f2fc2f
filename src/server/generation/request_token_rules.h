// Conversion of words to tokens: of a request's TokenRuleFields to the sampler's TokenRules.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sampling/token_rules.h"
#include "server/base/api_error.h"
#include "server/fields/generation_fields.h"
#include "text/tokenizer.h"

namespace pagoda {

// A search for the tokens whose text contains a string. The text of the vocabulary is built by the
// first search. Thread-safe.
class VocabularyText {
 public:
  explicit VocabularyText(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}

  // Appends the ids of tokens that contain `text`. REQUIRES: `text` is not empty.
  void find_tokens_with(std::string_view text, std::vector<int>& token_ids);

 private:
  void put_together();

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::once_flag once_;
  std::string bytes_;                // the texts of all tokens, one after the other
  std::vector<std::uint32_t> ends_;  // [vocab]: where each token ends in bytes_
};

// The context that rules are made in.
struct TokenRuleContext {
  const Tokenizer& tokenizer;
  VocabularyText& vocabulary_text;
  int vocab_size = 0;  // of the model; the tokenizer's may be larger
};

// Makes the rules of a request; null if it asks for none.
//  - A bad word is banned as in vLLM: with its tokens at the beginning of a text. Its tokens after
//    a space are banned too, if they are as many and begin with another token.
//  - A sequence breaker is every token whose text contains the string. If no token does, it is the
//    last token of the string.
// Errors name the field: an id outside of the vocabulary, a string that is not UTF-8.
ApiResult<std::shared_ptr<const TokenRules>> make_token_rules(const TokenRuleContext& context,
                                                              const GenerationFields& fields);

// Returns how much memory, in bytes, the rules take.
std::int64_t num_bytes(const TokenRules& rules);

}  // namespace pagoda
