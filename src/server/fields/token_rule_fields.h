// Request fields about single tokens and words, as sent: biases, bans, and DRY's sequence breakers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sampling/token_rules.h"
#include "server/fields/field_reader.h"

namespace pagoda {

inline constexpr int kMaxLogitBiases = 65536;      // the same as kMaxBadWordTokens
inline constexpr int kMaxAllowedTokens = 1 << 20;  // more than any vocabulary has
inline constexpr int kMaxBadWordChars = 1024;      // of one bad word
inline constexpr int kMaxBadWordBytes = 16384;     // of all bad words together
inline constexpr int kMaxSequenceBreakers = 64;
inline constexpr int kMaxSequenceBreakerChars = 40;  // of one breaker; llama.cpp's bound

struct TokenRuleFields {
  std::vector<LogitBias> logit_bias;
  std::optional<std::vector<int>> allowed_token_ids;
  std::vector<std::string> bad_words;
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};  // llama.cpp's defaults
};

// Appends these fields, which point into `fields`: it must outlive the table.
void add_token_rule_fields(std::vector<Field>& table, TokenRuleFields& fields);

}  // namespace pagoda
