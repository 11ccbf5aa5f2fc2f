#include "sampling/sampler_state.h"

#include <algorithm>
#include <bit>

#include "core/check.h"

namespace pagoda {
namespace {

// Fibonacci hashing: the high bits of a product with 2^32 over the golden ratio.
std::size_t slot_of(int token_id, std::size_t num_slots) {
  return (static_cast<std::uint32_t>(token_id) * 0x9E3779B9u) >> (32 - std::countr_zero(num_slots));
}

}  // namespace

bool SamplerState::is_needed(const SamplingParams& params) {
  return params.repetition_penalty != 1.0f || params.presence_penalty != 0.0f ||
         params.frequency_penalty != 0.0f;
}

SamplerState::SamplerState(int max_tokens) {
  const auto capacity = static_cast<std::size_t>(std::max(max_tokens, 1));
  entries_.reserve(capacity);
  table_.assign(std::bit_ceil(2 * capacity), -1);  // at most half full, so that probes stay short
}

void SamplerState::sync(std::span<const int> tokens, int num_prompt_tokens) {
  const int num_tokens = static_cast<int>(tokens.size());
  PAGODA_CHECK(num_synced_ <= num_tokens && num_tokens <= static_cast<int>(entries_.capacity()),
               "[sampler_state] a history shrank, or outgrew its limit");
  for (; num_synced_ < num_tokens; ++num_synced_) {
    Entry& entry = entry_of(tokens[num_synced_]);
    if (num_synced_ >= num_prompt_tokens) ++entry.output_count;
  }
}

SamplerState::Entry& SamplerState::entry_of(int token_id) {
  for (std::size_t slot = slot_of(token_id, table_.size());; slot = (slot + 1) % table_.size()) {
    if (table_[slot] < 0) {
      table_[slot] = static_cast<std::int32_t>(entries_.size());
      return entries_.emplace_back(Entry{.token_id = token_id});
    }
    if (Entry& entry = entries_[table_[slot]]; entry.token_id == token_id) return entry;
  }
}

void apply_penalties(const SamplingParams& params, std::span<const SamplerState::Entry> entries,
                     std::span<float> logits) {
  for (const SamplerState::Entry& entry : entries) {
    float& logit = logits[entry.token_id];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    if (entry.output_count == 0) continue;
    logit -= params.frequency_penalty * static_cast<float>(entry.output_count);
    logit -= params.presence_penalty;
  }
}

}  // namespace pagoda
