#include "sampling/token_rules.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/token_mask.h"
#include "sampling/sampling_params.h"

namespace pagoda {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();

Status check_id(const char* name, int id, int vocab_size) {
  if (0 <= id && id < vocab_size) return ok_status();
  return invalid_argument("[sampling] {}: expected an integer of [0, {}], got {}", name,
                          vocab_size - 1, id);
}

Status check_ascending(const char* name, std::span<const int> ids, int vocab_size) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    PAGODA_RETURN_IF_ERROR(check_id(name, ids[i], vocab_size));
    if (i == 0 || ids[i - 1] < ids[i]) continue;
    return invalid_argument("[sampling] {}: expected ascending ids, got {} after {}", name, ids[i],
                            ids[i - 1]);
  }
  return ok_status();
}

Status check_mask(const char* name, std::span<const std::uint32_t> mask, int vocab_size) {
  const std::size_t num_words = num_mask_words(vocab_size);
  if (mask.empty() || mask.size() == num_words) return ok_status();
  return invalid_argument("[sampling] {}: expected a mask of {} words, got {}", name, num_words,
                          mask.size());
}

Status check_biases(std::span<const LogitBias> biases, int vocab_size) {
  for (const LogitBias& entry : biases) {
    PAGODA_RETURN_IF_ERROR(check_id("logit_bias", entry.token_id, vocab_size));
    const bool in_range = std::abs(entry.bias) <= kMaxLogitBias;  // false for NaN
    if (in_range || entry.bias == kBanned) continue;
    return invalid_argument("[sampling] logit_bias: expected numbers of [{}, {}], got {}",
                            -kMaxLogitBias, kMaxLogitBias, entry.bias);
  }
  return ok_status();
}

Status check_bad_words(std::span<const std::vector<int>> words, int vocab_size) {
  if (words.size() > kMaxBadWords) {
    return invalid_argument("[sampling] bad_words: expected at most {}, got {}", kMaxBadWords,
                            words.size());
  }
  std::size_t num_tokens = 0;
  for (const std::vector<int>& word : words) {
    if (word.empty()) return invalid_argument("[sampling] bad_words: expected tokens, got none");
    num_tokens += word.size();
    for (const int id : word) PAGODA_RETURN_IF_ERROR(check_id("bad_words", id, vocab_size));
  }
  if (num_tokens <= kMaxBadWordTokens) return ok_status();
  return invalid_argument("[sampling] bad_words: expected at most {} tokens together, got {}",
                          kMaxBadWordTokens, num_tokens);
}

// Bans the tokens whose bits are clear, four at a time by 16-byte vectors, which every machine has.
// Half of the bits may be set, in no order, so branches would take five times as long.
void ban_unset_of_word(std::uint32_t word, float* logits) {
  using Vector = std::uint32_t __attribute__((vector_size(16)));
  constexpr auto kBannedBits = std::bit_cast<std::uint32_t>(kBanned);
  Vector bit = {1, 2, 4, 8};
  for (int i = 0; i < 32; i += 4, bit <<= 4) {
    Vector values;
    std::memcpy(&values, logits + i, sizeof(values));
    const auto unset = reinterpret_cast<Vector>((bit & word) == 0);
    values = (values & ~unset) | (unset & kBannedBits);
    std::memcpy(logits + i, &values, sizeof(values));
  }
}

}  // namespace

Status validate(const TokenRules& rules, int vocab_size) {
  PAGODA_RETURN_IF_ERROR(check_biases(rules.logit_bias, vocab_size));
  PAGODA_RETURN_IF_ERROR(check_mask("allowed_tokens", rules.allowed_tokens, vocab_size));
  PAGODA_RETURN_IF_ERROR(check_bad_words(rules.bad_words, vocab_size));
  return check_ascending("dry_sequence_breakers", rules.dry_sequence_breakers, vocab_size);
}

std::vector<std::uint32_t> mask_of(std::span<const int> token_ids, int vocab_size) {
  std::vector<std::uint32_t> mask(num_mask_words(vocab_size));
  for (const int id : token_ids) mask[id / 32] |= 1u << id % 32;
  return mask;
}

void add_logit_bias(const TokenRules& rules, std::span<float> logits) {
  for (const LogitBias& entry : rules.logit_bias) logits[entry.token_id] += entry.bias;
}

bool is_nearly_there(std::span<const int> word, std::span<const int> output) {
  const std::size_t num_before = word.size() - 1;
  return num_before <= output.size() &&
         std::equal(word.begin(), word.end() - 1, output.end() - num_before);
}

void ban_tokens(const TokenRules& rules, std::span<const int> output, std::span<float> logits) {
  if (!rules.allowed_tokens.empty()) ban_unset(rules.allowed_tokens, logits);
  for (const std::vector<int>& word : rules.bad_words) {
    if (is_nearly_there(word, output)) logits[word.back()] = kBanned;
  }
}

void ban_unset(std::span<const std::uint32_t> mask, std::span<float> logits) {
  const std::size_t num_whole = logits.size() / 32;
  for (std::size_t word = 0; word < num_whole; ++word) {
    if (mask[word] != ~std::uint32_t{0}) ban_unset_of_word(mask[word], logits.data() + 32 * word);
  }
  for (std::size_t id = 32 * num_whole; id < logits.size(); ++id) {
    if ((mask[num_whole] >> id % 32 & 1) == 0) logits[id] = kBanned;
  }
}

}  // namespace pagoda
