#include "engine/host_draws.h"

#include <utility>

#include "sampling/host/sampler_state.h"

namespace pagoda {
namespace {

// How long the rows of a step wait for their masks, all together, and how much longer if none of
// them has its mask.
constexpr std::chrono::milliseconds kMaskPatience(10), kMorePatience(90);

}  // namespace

RowSampling row_of(const Sequence& sequence, int context_len, std::span<const int> eos_token_ids) {
  const SamplingParams& params = sequence.params();
  return {.params = &params,
          .bans_stop_tokens = context_len - sequence.num_prompt_tokens() < params.min_tokens,
          .eos_token_ids = eos_token_ids,
          .tokens = sequence.tokens(),
          .num_prompt_tokens = sequence.num_prompt_tokens(),
          .seed = sequence.seed(),
          .sample_index = sequence.sample_index(),
          .position = context_len};
}

HostDraws::HostDraws(Exec& exec, int vocab_size, std::span<const int> eos_token_ids,
                     const std::vector<std::shared_ptr<const LogitsProcessor>>& logits_processors,
                     bool may_defer)
    : threads_(exec),
      eos_token_ids_(eos_token_ids.begin(), eos_token_ids.end()),
      has_processors_(!logits_processors.empty()),
      may_defer_(may_defer),
      row_masks_(vocab_size, eos_token_ids) {
  for (int thread = 0; thread < threads_.num_threads(); ++thread)
    samplers_.emplace_back(vocab_size, logits_processors);
}

void HostDraws::begin_step(std::vector<SampleOutcome>& outcomes) {
  outcomes_ = &outcomes;
  rows_.clear();
  rows_without_mask_.clear();
  row_masks_.clear();
  mask_deadline_ = Clock::system().now() + kMaskPatience;
}

void HostDraws::add(Sequence& sequence, std::span<const float> logits) {
  outcomes_->emplace_back();
  if (sequence.finished()) return;
  RowSampling sampling = row_of(sequence, sequence.num_tokens(), eos_token_ids_);
  sampling.logits = logits;
  sampling.state = synced_state(sequence);
  const HostRow row = {
      .outcome = outcomes_->size() - 1, .sequence = &sequence, .sampling = sampling};
  if (!may_defer(sequence)) return take_mask(row);
  // A mask that seems near may still take long. Then it delays this step, but after the deadline no
  // other mask does.
  TokenMaskSource& source = *sequence.mask_source();
  const bool is_near = source.is_mask_near() && Clock::system().now() < mask_deadline_;
  if (is_near || source.wait_for_mask(/*deadline=*/{})) return take_mask(row);
  rows_without_mask_.push_back(row);
}

// Returns whether a draw may be deferred. The draw of a sequence's first token may not: its mask is
// ready from the start.
bool HostDraws::may_defer(const Sequence& sequence) const {
  return may_defer_ && sequence.mask_source() != nullptr && sequence.num_output_tokens() > 0;
}

// Returns null where the parameters ask for no state.
SamplerState* HostDraws::synced_state(Sequence& sequence) {
  if (SamplerState::is_needed(sequence.params()) && !sequence.sampler_state())
    sequence.set_sampler_state(
        std::make_shared<SamplerState>(sequence.params(), sequence.max_num_tokens()));
  SamplerState* const state = sequence.sampler_state().get();
  if (state != nullptr) state->sync(sequence.tokens(), sequence.num_prompt_tokens());
  return state;
}

void HostDraws::take_mask(HostRow row) {
  const Result<std::span<const std::uint32_t>> mask = row_masks_.of(*row.sequence);
  if (!mask.ok()) {
    (*outcomes_)[row.outcome].status = mask.status();
    return;
  }
  row.sampling.mask = *mask;
  rows_.push_back(row);
}

// Waits for masks until the deadline, or longer if no row of the step has its mask. Then only new
// requests are delayed.
void HostDraws::wait_for_masks(bool is_decode) {
  const bool is_all = is_decode && rows_without_mask_.size() == outcomes_->size();
  const auto deadline = is_all ? mask_deadline_ + kMorePatience : mask_deadline_;
  for (const HostRow& row : rows_without_mask_) {
    if (row.sequence->mask_source()->wait_for_mask(deadline)) {
      take_mask(row);
    } else {
      (*outcomes_)[row.outcome].is_deferred = true;
    }
  }
}

void HostDraws::draw(bool is_decode) {
  wait_for_masks(is_decode);
  const auto draw_row = [this](std::int64_t i, int thread) {
    const Result<int> token = samplers_[thread].sample(rows_[i].sampling);
    (*outcomes_)[rows_[i].outcome] = {.token_id = token.ok() ? *token : 0,
                                      .status = token.status()};
  };
  const auto num_rows = static_cast<std::int64_t>(rows_.size());
  if (!has_processors_) {
    threads_.parallel_for(num_rows, draw_row);
  } else {  // processors run on this thread alone
    for (std::int64_t i = 0; i < num_rows; ++i) draw_row(i, 0);
  }
}

}  // namespace pagoda
