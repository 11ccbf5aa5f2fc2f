// What comes of a step: tokens, ends, errors; and cancelling.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "engine/scheduler.h"

namespace pagoda {

void Scheduler::commit(const Plan& plan, std::span<const SampleOutcome> outcomes, double seconds) {
  PAGODA_CHECK(
      static_cast<int>(outcomes.size()) == plan.num_samples,
      fmt::format("[scheduler] expected {} outcomes, got {}", plan.num_samples, outcomes.size()));
  if (plan.empty()) return;
  land(plan);
  has_committed_ = true;
  cost_.observe(plan.num_decodes, plan.num_tokens - plan.num_decodes, seconds);
  for (const PlannedSequence& planned : plan.sequences) {
    const std::size_t count = planned.samples ? 1 + planned.sequence->num_forks() : 0;
    commit_sequence(planned, outcomes.first(count));
    outcomes = outcomes.subspan(count);
  }
  collect_finished(running_);
}

// The oldest plan in flight is over.
void Scheduler::land(const Plan& plan) {
  Plan& oldest = plans_[num_in_flight_ == 2 ? 1 - newest_ : newest_];
  PAGODA_CHECK(num_in_flight_ > 0 && &plan == &oldest,
               "[scheduler] a plan is committed out of its order");
  --num_in_flight_;
  tables_.end_step(oldest.block_copies);
  for (const PlannedSequence& planned : plan.sequences) {
    --planned.sequence->num_in_flight_;
    if (planned.samples) --planned.sequence->num_awaited_;
  }
}

// outcomes: the sequence's, then its forks'; none where it does not sample.
void Scheduler::commit_sequence(const PlannedSequence& planned,
                                std::span<const SampleOutcome> outcomes) {
  Sequence& sequence = *planned.sequence;
  if (sequence.finished()) {  // by the step before
    counters_.num_dropped_positions += planned.num_new_tokens;
    return give_back(sequence);
  }
  const bool is_deferred = !outcomes.empty() && outcomes.front().is_deferred;
  sequence.num_computed_ = planned.context_len();
  if (is_deferred) defer(sequence);
  sequence.num_scored_ = std::max(
      sequence.num_scored_, std::min(planned.context_len(), sequence.num_prompt_tokens() - 1));
  tables_.keep(sequence.block_table_, sequence.tokens(), sequence.num_computed(),
               /*in_flight=*/sequence.num_in_flight_ > 0);
  // The forks are part of the step in flight behind this one, which samples nothing.
  if (sequence.num_in_flight_ > 0 && sequence.num_forks() > 0) return;
  // Nothing is to be sampled.
  const bool is_all = outcomes.empty() && sequence.num_computed_ == sequence.num_tokens();
  if (!outcomes.empty()) start_forks(sequence, outcomes.subspan(1));
  if (is_all) end_forks(sequence, FinishReason::kLength);
  drop_cancelled_forks(sequence);
  if (sequence.cancelled_) {
    finish(sequence, FinishReason::kCancelled);
  } else if (is_all) {
    finish(sequence, FinishReason::kLength);
  } else if (!outcomes.empty() && !is_deferred) {
    append(sequence, outcomes.front());
  }
}

// The last token of those that are computed counts as pending: it is computed again for its row.
void Scheduler::defer(Sequence& sequence) {
  PAGODA_CHECK(
      sequence.num_forks() == 0 && sequence.num_in_flight_ == 0 && sequence.num_output_tokens() > 0,
      "[scheduler] a draw is deferred that others wait for");
  sequence.num_planned_ = --sequence.num_computed_;
  sequence.awaits_mask_ = sequence.mask_source_ != nullptr;
  ++counters_.num_deferred_draws;
}

void Scheduler::append(Sequence& sequence, const SampleOutcome& outcome) {
  if (!outcome.status.ok()) {
    sequence.error_ = outcome.status;
    return finish(sequence, FinishReason::kError);
  }
  sequence.tokens_.push_back(outcome.token_id);
  TokenMaskSource* const grammar = sequence.mask_source();
  if (grammar != nullptr) sequence.error_ = grammar->accept(outcome.token_id);
  if (!sequence.error_.ok()) {
    finish(sequence, FinishReason::kError);
  } else if (is_stop_token(sequence, outcome.token_id)) {
    sequence.stop_token_id_ = outcome.token_id;
    finish(sequence, FinishReason::kStop);
  } else if (grammar != nullptr && grammar->is_stopped()) {
    finish(sequence, FinishReason::kStop);
  } else if (sequence.num_tokens() == sequence.max_num_tokens()) {
    finish(sequence, FinishReason::kLength);
  }
}

bool Scheduler::is_stop_token(const Sequence& sequence, int token_id) const {
  const auto contains = [token_id](const std::vector<int>& ids) {
    return std::find(ids.begin(), ids.end(), token_id) != ids.end();
  };
  const SamplingParams& params = sequence.params();
  return (!params.ignore_eos && contains(options_.eos_token_ids)) ||
         contains(params.stop_token_ids);
}

// The prompt is computed: each fork runs by itself from here on, in the same blocks.
void Scheduler::start_forks(Sequence& sequence, std::span<const SampleOutcome> outcomes) {
  for (int i = 0; i < sequence.num_forks(); ++i) {
    SequencePtr fork = std::move(sequence.forks_[i]);
    fork->tokens_.reserve(fork->max_num_tokens());
    tables_.share(sequence.block_table_, fork->block_table_);
    fork->num_computed_ = fork->num_planned_ = sequence.num_computed_;
    fork->num_cached_tokens_ = sequence.num_cached_tokens_;
    if (fork->cancelled_) {
      finish(*fork, FinishReason::kCancelled);
    } else {
      append(*fork, outcomes[i]);
    }
    insert_in_order(running_, std::move(fork));
  }
  sequence.forks_.clear();
}

void Scheduler::end_forks(Sequence& sequence, FinishReason reason) {
  for (SequencePtr& fork : sequence.forks_) {
    if (!fork->cancelled_) fork->error_ = sequence.error_;
    finish(*fork, fork->cancelled_ ? FinishReason::kCancelled : reason);
    finished_.push_back(std::move(fork));
  }
  sequence.forks_.clear();
}

void Scheduler::drop_cancelled_forks(Sequence& sequence) {
  for (SequencePtr& fork : sequence.forks_) {
    if (!fork->cancelled_) continue;
    finish(*fork, FinishReason::kCancelled);
    finished_.push_back(std::move(fork));
  }
  std::erase(sequence.forks_, nullptr);
}

// To the first fork of a sequence that ends before its prompt is computed: it goes on from there.
void Scheduler::hand_over(Sequence& sequence) {
  Sequence& fork = *sequence.forks_.front();
  fork.block_table_ = std::exchange(sequence.block_table_, {});
  fork.num_computed_ = fork.num_planned_ = std::exchange(sequence.num_computed_, 0);
  fork.num_cached_tokens_ = sequence.num_cached_tokens_;
  fork.tokens_.reserve(fork.max_num_tokens());
}

void Scheduler::fail(const Plan& plan, const Status& status) {
  land(plan);
  for (const PlannedSequence& planned : plan.sequences) {
    Sequence& sequence = *planned.sequence;
    if (sequence.finished()) {
      give_back(sequence);
      continue;
    }
    sequence.error_ = status;
    sequence.num_computed_ = 0;  // what the step wrote or copied is nothing to keep
    end_forks(sequence, FinishReason::kError);
    if (sequence.cancelled_) sequence.error_ = ok_status();
    finish(sequence, sequence.cancelled_ ? FinishReason::kCancelled : FinishReason::kError);
  }
  collect_finished(running_);
}

void Scheduler::cancel(RequestId id) {
  cancel_samples(id, std::nullopt);
}

void Scheduler::cancel_sample(RequestId id, int sample_index) {
  cancel_samples(id, sample_index);
}

void Scheduler::cancel_samples(RequestId id, std::optional<int> sample_index) {
  const auto cancel_matching = [&](Sequence& sequence) {
    if (sequence.request_id() != id) return;
    if (!sample_index || sequence.sample_index() == *sample_index) sequence.cancelled_ = true;
    for (const SequencePtr& fork : sequence.forks_) {
      if (!sample_index || fork->sample_index() == *sample_index) fork->cancelled_ = true;
    }
    // A step in flight still writes into its blocks, and may sample the forks.
    if (sequence.num_in_flight_ > 0) return;
    drop_cancelled_forks(sequence);
    if (sequence.cancelled_) finish(sequence, FinishReason::kCancelled);
  };
  for (const SequencePtr& sequence : waiting_) cancel_matching(*sequence);
  for (const SequencePtr& sequence : running_) cancel_matching(*sequence);
  collect_finished(waiting_);
  collect_finished(running_);
  num_waiting_forks_ = 0;
  for (const SequencePtr& sequence : waiting_) num_waiting_forks_ += sequence->num_forks();
}

void Scheduler::finish(Sequence& sequence, FinishReason reason) {
  sequence.finish_reason_ = reason;
  // A step in flight writes to its blocks: they come back with that one's commit.
  if (sequence.num_in_flight_ == 0) give_back(sequence);
}

void Scheduler::give_back(Sequence& sequence) {
  if (sequence.num_forks() > 0) hand_over(sequence);
  if (sequence.finish_reason_ != FinishReason::kError)
    tables_.keep_tail(sequence.block_table_, sequence.tokens(), sequence.num_computed());
  release_blocks(sequence);
}

void Scheduler::release_blocks(Sequence& sequence) {
  tables_.release(sequence.block_table_);
  sequence.num_computed_ = sequence.num_planned_ = 0;
}

// The first fork of one that has ended takes its place.
template <typename Sequences>
void Scheduler::collect_finished(Sequences& sequences) {
  for (SequencePtr& sequence : sequences) {
    if (!sequence->finished() || sequence->num_in_flight_ > 0) continue;
    SequencePtr next;
    if (sequence->num_forks() > 0) {
      next = std::move(sequence->forks_.front());
      sequence->forks_.erase(sequence->forks_.begin());
      next->forks_ = std::exchange(sequence->forks_, {});
    }
    finished_.push_back(std::exchange(sequence, std::move(next)));
  }
  std::erase(sequences, nullptr);
}

std::vector<std::unique_ptr<Sequence>> Scheduler::take_finished() {
  return std::exchange(finished_, {});
}

}  // namespace pagoda
