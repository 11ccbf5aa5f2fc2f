#include "sampling/device/row_changes.h"

#include <algorithm>
#include <limits>

#include "core/token_mask.h"
#include "ops/apply_logit_bias/apply_logit_bias.h"
#include "ops/apply_token_mask/apply_token_mask.h"
#include "sampling/device/unread_values.h"
#include "sampling/dry.h"
#include "sampling/token_rules.h"
#include "tensor/upload_packet.h"

namespace pagoda {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();

}  // namespace

bool RowChanges::cover(const SamplingParams& params) {
  return !DryState::is_needed(params);
}

bool RowChanges::look_back(const SamplingParams& params) {
  if (!params.token_rules) return false;
  const auto& words = params.token_rules->bad_words;
  return std::any_of(words.begin(), words.end(),
                     [](const std::vector<int>& word) { return word.size() > 1; });
}

RowChanges::RowChanges(int vocab_size) : vocab_size_(vocab_size) {}

void RowChanges::clear() {
  for (auto* ints : {&bias_rows_, &bias_ids_, &mask_words_, &mask_of_}) ints->clear();
  biases_.clear();
  num_rows_ = num_masks_ = 0;
}

void RowChanges::add(const RowSampling& row) {
  const SamplingParams& params = *row.params;
  mask_of_.push_back(-1);
  if (cover(params)) {
    if (params.token_rules)
      add_rules(*params.token_rules, row.tokens.subspan(row.num_prompt_tokens));
    if (row.bans_stop_tokens) {
      for (const int id : row.eos_token_ids) add_bias(id, kBanned);
      for (const int id : params.stop_token_ids) add_bias(id, kBanned);
    }
    if (!row.mask.empty()) add_mask(row.mask);
  }
  ++num_rows_;
}

void RowChanges::add_bias(int token_id, float bias) {
  if (token_id < 0 || token_id >= vocab_size_) return;
  bias_rows_.push_back(num_rows_);
  bias_ids_.push_back(token_id);
  biases_.push_back(bias);
}

void RowChanges::add_rules(const TokenRules& rules, std::span<const int> output) {
  for (const LogitBias& entry : rules.logit_bias) add_bias(entry.token_id, entry.bias);
  for (const std::vector<int>& word : rules.bad_words) {
    if (is_nearly_there(word, output)) add_bias(word.back(), kBanned);
  }
  if (!rules.allowed_tokens.empty()) add_mask(rules.allowed_tokens);
}

// Adds a mask to the row. A row's masks become one, which allows what all of them allow.
void RowChanges::add_mask(std::span<const std::uint32_t> mask) {
  if (mask_of_.back() < 0) {
    mask_of_.back() = num_masks_++;
    mask_words_.insert(mask_words_.end(), mask.begin(), mask.end());
    return;
  }
  const auto words = mask_words_.end() - static_cast<std::ptrdiff_t>(mask.size());
  std::transform(
      words, mask_words_.end(), mask.begin(), words,
      [](std::int32_t own, std::uint32_t other) { return own & static_cast<std::int32_t>(other); });
}

Tensor RowChanges::apply(Exec& exec, const Tensor& logits) const {
  LogitEntries biased;
  Tensor biases;
  TokenMasks masks;
  UploadPacket packet;
  if (!biases_.empty()) {
    packet.add(bias_rows_, biased.rows);
    packet.add(bias_ids_, biased.token_ids);
    packet.add(biases_, biases);
  }
  if (num_masks_ > 0) {
    packet.add(std::span(mask_words_), {num_masks_, num_mask_words(vocab_size_)}, masks.words);
    packet.add(mask_of_, masks.mask_of);
  }
  packet.upload(exec);
  Tensor changed = logits;
  if (!biases_.empty()) changed = apply_logit_bias(exec, changed, biased, biases);
  if (num_masks_ > 0) changed = apply_token_mask(exec, changed, masks);
  return changed;
}

void RowChanges::call_ops(Exec& exec, const Tensor& logits) {
  const std::int64_t rows = logits.extent(0), words = (logits.extent(1) + 31) / 32;
  apply_token_mask(exec, logits,
                   {.words = unread_integers(exec, words).view({1, words}),
                    .mask_of = unread_integers(exec, rows)});
  apply_logit_bias(exec, logits,
                   {.rows = unread_integers(exec, 1), .token_ids = unread_integers(exec, 1)},
                   unread_floats(exec, 1));
}

}  // namespace pagoda
