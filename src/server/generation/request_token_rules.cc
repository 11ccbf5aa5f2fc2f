#include "server/generation/request_token_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

constexpr EncodeOptions kPlain = {.add_special_tokens = false};

void sort_and_deduplicate(std::vector<int>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

MaybeError check_id(std::string_view param, int id, int vocab_size) {
  if (id < vocab_size) return {};
  return bad_request(
      std::string(param),
      fmt::format("'{}': expected token ids below {}, got {}", param, vocab_size, id),
      "out_of_range");
}

ApiResult<std::vector<int>> encode_word(const Tokenizer& tokenizer, std::string_view param,
                                        const std::string& word) {
  auto ids = tokenizer.encode(word, kPlain);
  if (!ids.ok()) return api_error(ids.status(), std::string(param));
  if (!ids->empty()) return *std::move(ids);
  return bad_request(std::string(param), fmt::format("'{}': '{}' has no tokens", param, word));
}

MaybeError add_bad_word(const Tokenizer& tokenizer, const std::string& word, TokenRules& rules) {
  const std::size_t first = word.find_first_not_of(" \t\n\r\f\v");
  const std::string stripped = first == std::string::npos ? word : word.substr(first);
  auto at_beginning = encode_word(tokenizer, "bad_words", stripped);
  if (!at_beginning.ok()) return std::move(at_beginning).error();
  auto& plain = *at_beginning;
  if (first != std::string::npos) {
    auto after_space = encode_word(tokenizer, "bad_words", " " + stripped);
    if (!after_space.ok()) return std::move(after_space).error();
    auto& spaced = *after_space;
    if (spaced.size() == plain.size() && spaced.front() != plain.front())
      rules.bad_words.push_back(std::move(spaced));
  }
  rules.bad_words.push_back(std::move(plain));
  return {};
}

MaybeError add_breaker(const TokenRuleContext& context, const std::string& text,
                       std::vector<int>& breakers) {
  const std::size_t num_before = breakers.size();
  context.vocabulary_text.find_tokens_with(text, breakers);
  if (breakers.size() > num_before) return {};
  auto ids = encode_word(context.tokenizer, "dry_sequence_breakers", text);
  if (!ids.ok()) return std::move(ids).error();
  breakers.push_back(ids->back());
  return {};
}

MaybeError add_breakers(const TokenRuleContext& context, const GenerationFields& fields,
                        TokenRules& rules) {
  if (fields.sampling.dry_multiplier <= 0) return {};
  for (const std::string& text : fields.token_rules.dry_sequence_breakers) {
    if (auto error = add_breaker(context, text, rules.dry_sequence_breakers)) return error;
  }
  sort_and_deduplicate(rules.dry_sequence_breakers);
  // The tokenizer's vocabulary may be padded beyond the model's.
  std::erase_if(rules.dry_sequence_breakers, [&](int id) { return id >= context.vocab_size; });
  return {};
}

MaybeError add_bad_words(const TokenRuleContext& context, const std::vector<std::string>& words,
                         TokenRules& rules) {
  for (const std::string& word : words) {
    if (auto error = add_bad_word(context.tokenizer, word, rules)) return error;
  }
  // Words with a token that the model has no logit for are never generated.
  std::erase_if(rules.bad_words, [&](const std::vector<int>& word) {
    return *std::max_element(word.begin(), word.end()) >= context.vocab_size;
  });
  return {};
}

}  // namespace

void VocabularyText::put_together() {
  const int vocab_size = tokenizer_->vocab_size();
  ends_.reserve(vocab_size);
  for (int id = 0; id < vocab_size; ++id) {
    const auto bytes = tokenizer_->token_bytes(id);
    if (bytes.ok()) bytes_ += *bytes;
    ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  }
}

void VocabularyText::find_tokens_with(std::string_view text, std::vector<int>& token_ids) {
  std::call_once(once_, [this] { put_together(); });
  for (std::size_t at = bytes_.find(text); at != std::string::npos;) {
    const auto token = std::upper_bound(ends_.begin(), ends_.end(), at);
    const bool is_within = at + text.size() <= *token;
    if (is_within) token_ids.push_back(static_cast<int>(token - ends_.begin()));
    at = bytes_.find(text, is_within ? *token : at + 1);
  }
}

ApiResult<std::shared_ptr<const TokenRules>> make_token_rules(const TokenRuleContext& context,
                                                              const GenerationFields& fields) {
  const TokenRuleFields& asked = fields.token_rules;
  TokenRules rules;
  rules.logit_bias = asked.logit_bias;
  for (const LogitBias& entry : rules.logit_bias) {
    if (auto error = check_id("logit_bias", entry.token_id, context.vocab_size))
      return std::move(*error);
  }
  if (asked.allowed_token_ids) {
    for (const int id : *asked.allowed_token_ids) {
      if (auto error = check_id("allowed_token_ids", id, context.vocab_size))
        return std::move(*error);
    }
    rules.allowed_tokens = mask_of(*asked.allowed_token_ids, context.vocab_size);
  }
  if (auto error = add_bad_words(context, asked.bad_words, rules)) return std::move(*error);
  if (auto error = add_breakers(context, fields, rules)) return std::move(*error);
  const bool has_any = !rules.logit_bias.empty() || !rules.allowed_tokens.empty() ||
                       !rules.bad_words.empty() || !rules.dry_sequence_breakers.empty();
  if (!has_any) return std::shared_ptr<const TokenRules>();
  return std::make_shared<const TokenRules>(std::move(rules));
}

std::int64_t num_bytes(const TokenRules& rules) {
  std::size_t num_bytes = rules.logit_bias.size() * sizeof(LogitBias) +
                          rules.allowed_tokens.size() * sizeof(std::uint32_t) +
                          rules.dry_sequence_breakers.size() * sizeof(int);
  for (const std::vector<int>& word : rules.bad_words)
    num_bytes += sizeof(word) + word.size() * sizeof(int);
  return static_cast<std::int64_t>(num_bytes);
}

}  // namespace pagoda
