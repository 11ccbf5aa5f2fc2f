#include "sampling/host/sampler_state.h"

#include "core/check.h"

namespace pagoda {
namespace {

bool has_penalties(const SamplingParams& params) {
  return params.repeat_last_n != 0 &&
         (params.repetition_penalty != 1.0f || params.presence_penalty != 0.0f ||
          params.frequency_penalty != 0.0f);
}

}  // namespace

bool penalises(const SamplingParams& params) {
  return has_penalties(params) || DryState::is_needed(params);
}

bool SamplerState::is_needed(const SamplingParams& params) {
  return penalises(params) || MirostatState::is_needed(params);
}

SamplerState::SamplerState(const SamplingParams& params, int max_tokens)
    : max_tokens_(max_tokens), window_(params) {
  if (penalises(params)) seen_.emplace(max_tokens);
  if (DryState::is_needed(params)) dry_.emplace(params, max_tokens);
  if (MirostatState::is_needed(params)) mirostat_.emplace(params, max_tokens);
}

void SamplerState::sync(std::span<const int> tokens, int num_prompt_tokens, std::uint64_t epoch) {
  const int num_tokens = static_cast<int>(tokens.size());
  PAGODA_CHECK(num_prompt_tokens <= num_tokens && num_tokens <= max_tokens_,
               "[sampler_state] a history lost its prompt, or outgrew its limit");
  if (mirostat_) mirostat_->sync(num_tokens - num_prompt_tokens);
  if (!seen_) return;
  if (epoch != epoch_ || num_tokens < num_synced_) {
    seen_->clear();
    if (dry_) dry_->clear();
    num_synced_ = num_left_ = 0;
    epoch_ = epoch;
  }
  for (; num_synced_ < num_tokens; ++num_synced_) {
    const int token_id = tokens[num_synced_];
    const int index = seen_->add(token_id, window_.is_output(num_synced_, num_prompt_tokens));
    if (dry_) dry_->append(index, token_id);
  }
  for (; num_left_ < window_.begin(num_tokens); ++num_left_) seen_->take_back(tokens[num_left_]);
  if (dry_) dry_->advance();
}

std::span<const SeenToken> SamplerState::entries() const {
  return seen_ ? seen_->entries() : std::span<const SeenToken>();
}

void penalise_logits(const SamplingParams& params, std::span<const SeenToken> entries,
                     std::span<float> logits) {
  for (const SeenToken& entry : entries) {
    if (params.repeat_last_n && entry.output_count == 0) continue;  // it has left the window
    float& logit = logits[entry.token_id];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    if (entry.output_count == 0) continue;
    logit -= params.frequency_penalty * static_cast<float>(entry.output_count);
    logit -= params.presence_penalty;
  }
}

}  // namespace pagoda
