#include "engine/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/check.h"

namespace pagoda {
namespace {

bool runs_before(const std::unique_ptr<Sequence>& a, const std::unique_ptr<Sequence>& b) {
  return std::tuple(a->priority(), a->arrival()) < std::tuple(b->priority(), b->arrival());
}

template <typename Container>
void insert_in_order(Container& sequences, std::unique_ptr<Sequence> sequence) {
  const auto place = std::upper_bound(sequences.begin(), sequences.end(), sequence, runs_before);
  sequences.insert(place, std::move(sequence));
}

}  // namespace

Scheduler::Scheduler(SchedulerOptions options, BlockPool& pool)
    : options_(std::move(options)), pool_(pool) {
  PAGODA_CHECK(options_.block_size > 0 && options_.max_num_seqs > 0 &&
                   options_.max_num_batched_tokens > 0 && options_.max_model_len > 0,
               "[scheduler] expected positive limits");
  // A decode is one token: with more sequences than tokens some would wait while they hold blocks.
  options_.max_num_seqs = std::min(options_.max_num_seqs, options_.max_num_batched_tokens);
  running_.reserve(options_.max_num_seqs);
  plan_.sequences.reserve(options_.max_num_seqs);
}

int Scheduler::max_num_tokens(int num_prompt_tokens, const SamplingParams& params) const {
  const std::int64_t wanted = std::int64_t{num_prompt_tokens} + params.max_tokens;
  return static_cast<int>(std::min<std::int64_t>(wanted, options_.max_model_len));
}

int Scheduler::worst_case_blocks(int num_prompt_tokens, int max_num_tokens) const {
  // The last token is sampled, but never computed.
  const int num_stored = std::max(num_prompt_tokens, max_num_tokens - 1);
  return (num_stored + options_.block_size - 1) / options_.block_size;
}

int Scheduler::worst_case_blocks(const Sequence& sequence) const {
  return worst_case_blocks(sequence.num_prompt_tokens(), sequence.max_num_tokens());
}

Admission Scheduler::check(int num_prompt_tokens, const SamplingParams& params) const {
  const int max_tokens = max_num_tokens(num_prompt_tokens, params);
  return worst_case_blocks(num_prompt_tokens, max_tokens) <= pool_.num_blocks()
             ? Admission::kAdmitted
             : Admission::kNeverFits;
}

void Scheduler::add(const Request& request) {
  const int num_prompt_tokens = static_cast<int>(request.prompt_token_ids.size());
  PAGODA_CHECK(check(num_prompt_tokens, request.params) == Admission::kAdmitted,
               fmt::format("[scheduler] request {} can never run", request.id));
  const int max_tokens = max_num_tokens(num_prompt_tokens, request.params);
  for (int sample = 0; sample < request.params.n; ++sample) {
    insert_in_order(waiting_,
                    std::make_unique<Sequence>(request, sample, next_arrival_++, max_tokens));
  }
}

void Scheduler::cancel(RequestId id) {
  cancel_samples(id, std::nullopt);
}

void Scheduler::cancel_sample(RequestId id, int sample_index) {
  cancel_samples(id, sample_index);
}

void Scheduler::cancel_samples(RequestId id, std::optional<int> sample_index) {
  const auto matches = [&](const SequencePtr& sequence) {
    return sequence->request_id() == id &&
           (!sample_index || sequence->sample_index() == *sample_index);
  };
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (matches(*it)) {
      finish(**it, FinishReason::kCancelled);
      finished_.push_back(std::move(*it));
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
  for (const SequencePtr& sequence : running_) {
    if (!matches(sequence)) continue;
    // A step in flight still writes into its blocks.
    sequence->cancelled_ = true;
    if (!sequence->in_flight_) finish(*sequence, FinishReason::kCancelled);
  }
  collect_finished();
}

const Plan& Scheduler::plan() {
  plan_.sequences.clear();
  plan_.num_tokens = 0;
  plan_.num_samples = 0;
  for (const SequencePtr& sequence : running_) {
    if (sequence->num_pending() == 1) plan_chunk(*sequence, 1);
  }
  plan_.num_decodes = static_cast<int>(plan_.sequences.size());

  const auto plan_prefill = [this](Sequence& sequence) {
    const int budget = options_.max_num_batched_tokens - plan_.num_tokens;
    if (budget > 0) plan_chunk(sequence, std::min(sequence.num_pending(), budget));
  };
  for (const SequencePtr& sequence : running_) {
    if (sequence->num_pending() > 1) plan_prefill(*sequence);
  }
  while (!waiting_.empty() && plan_.num_tokens < options_.max_num_batched_tokens) {
    Sequence& head = *waiting_.front();
    if (try_admit(waiting_.front()) != Admission::kAdmitted) break;
    waiting_.pop_front();
    plan_prefill(head);
  }
  return plan_;
}

// Moves the sequence to those that run, or says why it has to wait.
Admission Scheduler::try_admit(SequencePtr& sequence) {
  if (num_running() == options_.max_num_seqs) return Admission::kNoSequencePlace;
  const int num_blocks = worst_case_blocks(*sequence);
  if (num_blocks > pool_.num_blocks() - num_reserved_blocks_) return Admission::kNoBlocks;
  num_reserved_blocks_ += num_blocks;
  // All the memory that its steps will need, now.
  sequence->tokens_.reserve(sequence->max_num_tokens());
  sequence->block_table_.reserve(num_blocks);
  insert_in_order(running_, std::move(sequence));
  return Admission::kAdmitted;
}

void Scheduler::plan_chunk(Sequence& sequence, int num_new_tokens) {
  PAGODA_CHECK(!sequence.in_flight_, "[scheduler] a plan is made before the last one is committed");
  PlannedSequence planned = {.sequence = &sequence,
                             .first_position = sequence.num_computed(),
                             .num_new_tokens = num_new_tokens};
  const int end = planned.context_len();
  planned.samples =
      end == sequence.num_tokens() && sequence.num_tokens() < sequence.max_num_tokens();
  if (sequence.scores_prompt()) {
    const int scored_end = std::min(end, sequence.num_prompt_tokens() - 1);
    planned.num_scored_rows = std::max(0, scored_end - planned.first_position);
  }
  while (static_cast<std::int64_t>(sequence.block_table_.size()) * options_.block_size < end) {
    const std::optional<int> block_id = pool_.allocate();
    PAGODA_CHECK(block_id.has_value(), "[scheduler] a block that was reserved is not there");
    sequence.block_table_.push_back(*block_id);
  }
  sequence.in_flight_ = true;
  plan_.num_tokens += num_new_tokens;
  plan_.num_samples += planned.samples;
  plan_.sequences.push_back(planned);
}

void Scheduler::commit(const Plan& plan, std::span<const SampleOutcome> outcomes) {
  PAGODA_CHECK(
      static_cast<int>(outcomes.size()) == plan.num_samples,
      fmt::format("[scheduler] expected {} outcomes, got {}", plan.num_samples, outcomes.size()));
  std::size_t next_outcome = 0;
  for (const PlannedSequence& planned : plan.sequences) {
    Sequence& sequence = *planned.sequence;
    const SampleOutcome* outcome = planned.samples ? &outcomes[next_outcome++] : nullptr;
    sequence.in_flight_ = false;
    sequence.num_computed_ = planned.context_len();
    if (sequence.cancelled_) {
      finish(sequence, FinishReason::kCancelled);
    } else if (outcome) {
      append(sequence, *outcome);
    } else if (sequence.num_pending() == 0) {  // nothing was to be sampled
      finish(sequence, FinishReason::kLength);
    }
  }
  collect_finished();
}

void Scheduler::fail(const Plan& plan, const Status& status) {
  for (const PlannedSequence& planned : plan.sequences) {
    Sequence& sequence = *planned.sequence;
    sequence.in_flight_ = false;
    if (!sequence.cancelled_) sequence.error_ = status;
    finish(sequence, sequence.cancelled_ ? FinishReason::kCancelled : FinishReason::kError);
  }
  collect_finished();
}

std::vector<std::unique_ptr<Sequence>> Scheduler::take_finished() {
  return std::exchange(finished_, {});
}

void Scheduler::append(Sequence& sequence, const SampleOutcome& outcome) {
  if (!outcome.status.ok()) {
    sequence.error_ = outcome.status;
    return finish(sequence, FinishReason::kError);
  }
  sequence.tokens_.push_back(outcome.token_id);
  if (is_stop_token(sequence, outcome.token_id)) {
    sequence.stop_token_id_ = outcome.token_id;
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

void Scheduler::finish(Sequence& sequence, FinishReason reason) {
  sequence.finish_reason_ = reason;
  for (const int block_id : sequence.block_table_) pool_.release(block_id);
  sequence.block_table_.clear();
}

void Scheduler::collect_finished() {
  auto kept = running_.begin();
  for (auto it = running_.begin(); it != running_.end(); ++it) {
    if ((*it)->finished()) {
      num_reserved_blocks_ -= worst_case_blocks(**it);
      finished_.push_back(std::move(*it));
    } else if (kept++ != it) {
      *std::prev(kept) = std::move(*it);
    }
  }
  running_.erase(kept, running_.end());
}

}  // namespace pagoda
