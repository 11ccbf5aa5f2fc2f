// TokenRules: a request's rules for single tokens: biases, bans and DRY's sequence breakers. Made
// once for a request, shared by its samples, immutable. Its validate() is in sampling_params.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pagoda {

struct LogitBias {
  int token_id = 0;
  float bias = 0;  // added to the logit; -infinity: the token is banned
};

struct TokenRules {
  std::vector<LogitBias> logit_bias;
  std::vector<std::uint32_t> allowed_tokens;  // a mask, as ban_unset() takes it; empty: all
  std::vector<std::vector<int>> bad_words;    // sequences of token ids that the output never holds
  std::vector<int> dry_sequence_breakers;     // ascending; sampling/dry.h
};

inline constexpr float kMaxLogitBias = 100;  // OpenAI's limit, for either sign
inline constexpr int kMaxBadWords = 2048;
inline constexpr int kMaxBadWordTokens = 65536;  // of all bad words together

// Returns the mask of these ids, which must be in range: bit i % 32 of word i / 32 is set for id i.
// Its size is (vocab_size + 31) / 32.
std::vector<std::uint32_t> mask_of(std::span<const int> token_ids, int vocab_size);

// Adds the biases to logits [vocab_size] in place.
void add_logit_bias(const TokenRules& rules, std::span<float> logits);

// Returns true if `output` ends with all tokens of a bad word except the last, which is then
// banned.
bool is_nearly_there(std::span<const int> word, std::span<const int> output);

// Bans the tokens that are not allowed and those that would end a bad word. As in vLLM, a bad word
// must begin in the output. output: [num_output_tokens]; logits [vocab_size], changed in place.
void ban_tokens(const TokenRules& rules, std::span<const int> output, std::span<float> logits);

// Bans the tokens whose bits are not set. mask: [(vocab_size + 31) / 32]; logits [vocab_size],
// changed in place.
void ban_unset(std::span<const std::uint32_t> mask, std::span<float> logits);

}  // namespace pagoda
