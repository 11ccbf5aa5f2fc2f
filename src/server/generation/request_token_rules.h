// From words to tokens: a request's TokenRuleFields as the sampler's TokenRules.
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

// Finds the tokens whose text holds a string. The vocabulary's text is put together at the first
// question. Thread-safe.
class VocabularyText {
 public:
  explicit VocabularyText(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}

  // Appends their ids. text: not empty.
  void find_tokens_with(std::string_view text, std::vector<int>& token_ids);

 private:
  void put_together();

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::once_flag once_;
  std::string bytes_;                // of all tokens, one after the other
  std::vector<std::uint32_t> ends_;  // [vocab]; of each token in bytes_
};

// The context that rules are made in.
struct TokenRuleContext {
  const Tokenizer& tokenizer;
  VocabularyText& vocabulary_text;
  int vocab_size = 0;  // the model's
};

// Makes the rules of a request; null where the request has no such rule.
//  - A bad word is banned as vLLM does it: as it is tokenised at a text's beginning, and after a
//    space where that is as many tokens of which the first is another.
//  - A sequence breaker is every token whose text holds the string; where there is none, the last
//    token of the string's own.
// Errors name the field: an id outside of the vocabulary, a string that is not UTF-8.
ApiResult<std::shared_ptr<const TokenRules>> make_token_rules(const TokenRuleContext& context,
                                                              const GenerationFields& fields);

// Returns how much memory rules take.
std::int64_t num_bytes(const TokenRules& rules);

}  // namespace pagoda
