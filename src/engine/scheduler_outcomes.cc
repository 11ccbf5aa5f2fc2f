// The outcomes of a step: tokens, ends, errors; and cancelling.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "engine/scheduler.h"

namespace pagoda {
namespace {

// Moves the sequences that have ended to `ended`. The first fork of such a sequence takes its
// place.
template <typename Sequences>
void take_ended(Sequences& sequences, std::vector<std::unique_ptr<Sequence>>& ended) {
  for (std::unique_ptr<Sequence>& sequence : sequences) {
    if (!sequence->finished() || sequence->is_in_flight()) continue;
    std::unique_ptr<Sequence> next = sequence->split_forks(/*num_kept=*/0);
    ended.push_back(std::exchange(sequence, std::move(next)));
  }
  std::erase(sequences, nullptr);
}

}  // namespace

void Scheduler::commit(const Plan& plan, std::span<const SampleOutcome> outcomes, double seconds) {
  PAGODA_CHECK(
      static_cast<int>(outcomes.size()) == plan.num_samples,
      fmt::format("[scheduler] expected {} outcomes, got {}", plan.num_samples, outcomes.size()));
  if (plan.empty()) return;
  complete(plan);
  has_committed_ = true;
  cost_.observe(plan.num_decodes, plan.num_tokens - plan.num_decodes, seconds);
  for (const PlannedSequence& planned : plan.sequences) {
    const std::size_t count = planned.samples ? 1 + planned.sequence->num_forks() : 0;
    commit_sequence(planned, outcomes.first(count));
    outcomes = outcomes.subspan(count);
  }
  take_ended(running_, finished_);
}

// Completes the oldest step in flight: its block copies are done, and its sequences no longer wait
// for it.
void Scheduler::complete(const Plan& plan) {
  Plan& completed = plans_.complete(plan);
  counters_.num_block_copies += completed.block_copies.size();
  tables_.end_step(completed.block_copies);
  for (const PlannedSequence& planned : plan.sequences) {
    --planned.sequence->num_in_flight_;
    if (planned.samples) --planned.sequence->num_awaited_;
  }
}

// Commits one sequence. outcomes: its own, then its forks'; none if it does not sample.
void Scheduler::commit_sequence(const PlannedSequence& planned,
                                std::span<const SampleOutcome> outcomes) {
  Sequence& sequence = *planned.sequence;
  if (sequence.finished()) {  // the step before has ended it
    counters_.num_dropped_positions += planned.num_new_tokens;
    return release(sequence);
  }
  const bool is_deferred = !outcomes.empty() && outcomes.front().is_deferred;
  sequence.num_computed_ = planned.context_len();
  if (is_deferred) {
    sequence.defer();
    ++counters_.num_deferred_draws;
  }
  sequence.num_read_ =
      std::max(sequence.num_read_, std::min(planned.context_len(), sequence.rows_to_read().end));
  tables_.keep(sequence.block_table_, sequence.tokens(), sequence.num_computed(),
               /*in_flight=*/sequence.is_in_flight());
  tables_.give_back(sequence.block_table_, sequence.num_computed());
  // The step in flight after this one samples for the forks, so they stay. This step samples
  // nothing.
  if (sequence.is_in_flight() && sequence.num_forks() > 0) return;
  // All tokens are computed and none is sampled.
  const bool is_all = outcomes.empty() && sequence.num_computed_ == sequence.num_tokens();
  if (!outcomes.empty()) start_forks(sequence, outcomes.subspan(1));
  finish_forks(sequence, is_all ? FinishReason::kLength : FinishReason::kNone);
  if (sequence.cancelled_) {
    finish(sequence, FinishReason::kCancelled);
  } else if (is_all) {
    finish(sequence, FinishReason::kLength);
  } else if (!outcomes.empty() && !is_deferred) {
    append(sequence, outcomes.front());
  }
}

void Scheduler::append(Sequence& sequence, const SampleOutcome& outcome) {
  FinishReason reason = FinishReason::kError;
  if (outcome.status.ok()) {
    reason = sequence.append(outcome.token_id, options_.eos_token_ids);
  } else {
    sequence.error_ = outcome.status;
  }
  if (reason != FinishReason::kNone) finish(sequence, reason);
}

// Lets each fork run by itself in the same blocks, because the prompt is computed now.
void Scheduler::start_forks(Sequence& sequence, std::span<const SampleOutcome> outcomes) {
  for (int i = 0; i < sequence.num_forks(); ++i) {
    SequencePtr fork = std::move(sequence.forks_[i]);
    tables_.share(sequence.block_table_, fork->block_table_);
    fork->go_on_from(sequence);
    if (fork->cancelled_) {
      finish(*fork, FinishReason::kCancelled);
    } else {
      append(*fork, outcomes[i]);
    }
    insert_in_order(running_, std::move(fork));
  }
  sequence.forks_.clear();
}

// Ends the forks that were cancelled. Ends the other forks too unless the reason is kNone.
void Scheduler::finish_forks(Sequence& sequence, FinishReason reason) {
  for (SequencePtr& fork : sequence.forks_) {
    if (!fork->cancelled_ && reason == FinishReason::kNone) continue;
    if (!fork->cancelled_) fork->error_ = sequence.error_;
    finish(*fork, fork->cancelled_ ? FinishReason::kCancelled : reason);
    finished_.push_back(std::move(fork));
  }
  std::erase(sequence.forks_, nullptr);
}

void Scheduler::fail(const Plan& plan, const Status& status) {
  complete(plan);
  for (const PlannedSequence& planned : plan.sequences) {
    Sequence& sequence = *planned.sequence;
    if (sequence.finished()) {
      release(sequence);
      continue;
    }
    sequence.error_ = status;
    sequence.num_computed_ = 0;  // nothing that the step wrote or copied is cached
    finish_forks(sequence, FinishReason::kError);
    if (sequence.cancelled_) sequence.error_ = ok_status();
    finish(sequence, sequence.cancelled_ ? FinishReason::kCancelled : FinishReason::kError);
  }
  take_ended(running_, finished_);
}

void Scheduler::cancel(RequestId id, std::optional<int> sample_index) {
  const auto cancel_matching = [&](Sequence& sequence) {
    if (sequence.request_id() != id) return;
    if (!sample_index || sequence.sample_index() == *sample_index) sequence.cancelled_ = true;
    for (const SequencePtr& fork : sequence.forks_) {
      if (!sample_index || fork->sample_index() == *sample_index) fork->cancelled_ = true;
    }
    // A step in flight still writes into its blocks, and may sample the forks.
    if (sequence.is_in_flight()) return;
    finish_forks(sequence, FinishReason::kNone);
    if (sequence.cancelled_) finish(sequence, FinishReason::kCancelled);
  };
  const auto cancel_in = [&](auto& sequences) {
    for (const SequencePtr& sequence : sequences) cancel_matching(*sequence);
    take_ended(sequences, finished_);
  };
  waiting_.change(cancel_in);
  cancel_in(fetching_);
  cancel_in(running_);
}

void Scheduler::finish(Sequence& sequence, FinishReason reason) {
  sequence.finish_reason_ = reason;
  // A step in flight writes to its blocks: they are freed when that step is committed.
  if (!sequence.is_in_flight()) release(sequence);
}

void Scheduler::release(Sequence& sequence) {
  if (sequence.num_forks() > 0) {  // its prompt is not computed yet: the first fork goes on with it
    Sequence& fork = *sequence.forks_.front();
    fork.go_on_from(sequence);
    fork.block_table_ = std::exchange(sequence.block_table_, {});
    sequence.num_computed_ = 0;
  }
  if (sequence.finish_reason_ != FinishReason::kError)
    tables_.keep_tail(sequence.block_table_, sequence.tokens(), sequence.num_computed());
  sequence.release_blocks(tables_);
}

std::vector<std::unique_ptr<Sequence>> Scheduler::take_finished() {
  return std::exchange(finished_, {});
}

}  // namespace pagoda
