// The plan of a step: which sequences decode, grow, are preempted and are admitted.
#include "engine/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "core/check.h"

namespace pagoda {
namespace {

// Returns how many tokens of the sequence the step computes, and takes them from the shares.
int take_tokens(const Sequence& sequence, StepShares& shares) {
  const int num_pending = sequence.num_plannable();
  if (num_pending == 1) return shares.decodes ? 1 : 0;
  const int num_tokens = std::min(num_pending, shares.num_prefill_tokens);
  shares.num_prefill_tokens -= num_tokens;
  return num_tokens;
}

// Checks the limits, and lowers max_num_seqs to max_num_batched_tokens. A decode takes one token,
// so of more sequences some would never be in a step.
SchedulerOptions checked(SchedulerOptions options) {
  PAGODA_CHECK(options.block_size > 0 && options.max_num_seqs > 0 &&
                   options.max_num_batched_tokens > 0 && options.max_model_len > 0,
               "[scheduler] expected positive limits");
  options.max_num_seqs = std::min(options.max_num_seqs, options.max_num_batched_tokens);
  return options;
}

// Returns the most tokens of prompt and output together.
int max_num_tokens(int num_prompt_tokens, const SamplingParams& params, int max_model_len) {
  const std::int64_t wanted = std::int64_t{num_prompt_tokens} + params.max_tokens;
  return static_cast<int>(std::min<std::int64_t>(wanted, max_model_len));
}

}  // namespace

Scheduler::Scheduler(SchedulerOptions options, BlockPool& pool, PrefixCache* cache)
    : options_(checked(std::move(options))),
      tables_(pool, cache, CacheGroups(options_.block_size, options_.group_windows)),
      waiting_(options_.num_steps_per_turn),
      plans_(options_.max_num_seqs) {
  running_.reserve(options_.max_num_seqs);
}

Admission Scheduler::check(int num_prompt_tokens, const SamplingParams& params) const {
  const int max_tokens = max_num_tokens(num_prompt_tokens, params, options_.max_model_len);
  const int max_stored = std::max(num_prompt_tokens, max_tokens - 1);
  return tables_.groups().most_held(max_stored) <= tables_.num_blocks() ? Admission::kAdmitted
                                                                        : Admission::kNeverFits;
}

void Scheduler::add(Request request) {
  const GenerationRequest& generation = request.generation;
  const int num_prompt_tokens = static_cast<int>(generation.prompt_token_ids.size());
  PAGODA_CHECK(check(num_prompt_tokens, generation.sampling) == Admission::kAdmitted,
               fmt::format("[scheduler] request {} can never run", request.id));
  const int max_tokens =
      max_num_tokens(num_prompt_tokens, generation.sampling, options_.max_model_len);
  // All samples share one hash of owner and salt, and one copy of the parameters.
  BlockTable empty_table;
  tables_.open(empty_table, generation.cache_owner, generation.cache_salt);
  const auto params =
      std::make_shared<const SamplingParams>(std::move(request.generation.sampling));
  std::unique_ptr<Sequence> first;
  for (int sample = 0; sample < params->n; ++sample) {
    auto sequence =
        std::make_unique<Sequence>(request, params, sample, next_arrival_++, max_tokens);
    sequence->block_table_ = empty_table;
    if (sample == 0) {
      first = std::move(sequence);
    } else if (sample < options_.max_num_seqs) {
      first->forks_.push_back(std::move(sequence));
    } else {
      waiting_.insert(std::move(sequence));
    }
  }
  waiting_.insert(std::move(first));
}

int Scheduler::num_running() const {
  int num_running = static_cast<int>(running_.size());
  for (const SequencePtr& sequence : running_) num_running += sequence->num_forks();
  return num_running;
}

int Scheduler::num_waiting() const {
  int num_waiting = waiting_.num_samples();
  for (const SequencePtr& sequence : fetching_) num_waiting += 1 + sequence->num_forks();
  return num_waiting;
}

bool Scheduler::has_prompts() const {
  return !waiting_.empty() || !fetching_.empty() ||
         std::any_of(running_.begin(), running_.end(),
                     [](const SequencePtr& sequence) { return sequence->num_plannable() > 1; });
}

const Plan& Scheduler::plan() {
  PAGODA_CHECK(plans_.num_in_flight() == 0,
               "[scheduler] a plan is made before the last one is committed");
  for (const SequencePtr& sequence : running_) {
    if (sequence->awaits_mask_)
      sequence->awaits_mask_ = !sequence->mask_source_->wait_for_mask(/*deadline=*/{});
  }
  give_turn();
  fetch_blocks();
  plan_step(share_next_step());
  if (plans_.next().empty() && !idle()) {
    // The sequences that the shares were for found no blocks. Try decodes and prompts together, up
    // to the token budget.
    const auto num_decodes =
        std::count_if(running_.begin(), running_.end(),
                      [](const SequencePtr& sequence) { return sequence->num_plannable() == 1; });
    plan_step(
        {.decodes = true,
         .num_prefill_tokens = options_.max_num_batched_tokens - static_cast<int>(num_decodes)});
  }
  return plans_.next().empty() ? plans_.next() : plans_.launch();
}

// Plans without preemption, because a step in flight uses the blocks.
const Plan* Scheduler::plan_ahead() {
  if (plans_.num_in_flight() != 1 || !has_committed_) return nullptr;
  give_turn();
  fetch_blocks();
  const StepShares shares = share_next_step();
  if (num_blocks_wanted(shares) > num_free_blocks()) return nullptr;
  // Number this step's outcomes, so that the next step can refer to them as its input tokens.
  int num_outcomes = 0;
  for (const PlannedSequence& planned : plans_.newest().sequences) {
    if (!planned.samples) continue;
    planned.sequence->awaited_outcome_ = num_outcomes;
    num_outcomes += 1 + planned.sequence->num_forks();
  }
  plan_step(shares);
  return plans_.next().empty() ? nullptr : &plans_.launch();
}

// Moves the request whose turn it is to the front. This runs before fetched sequences come back, so
// only those that were overtaken in the last step count. The request keeps its new priority while
// it runs. Otherwise it would be preempted for the ones that it has passed.
void Scheduler::give_turn() {
  const std::optional<RequestId> id = waiting_.end_turn();
  if (!id) return;
  ++counters_.num_priority_turns;
  const auto put_first = [&](auto& sequences) {
    for (const SequencePtr& sequence : sequences) {
      if (sequence->request_id() != *id) continue;
      sequence->priority_ = std::numeric_limits<int>::min();
      for (const auto& fork : sequence->forks_) fork->priority_ = sequence->priority_;
    }
    std::stable_sort(sequences.begin(), sequences.end(), runs_before);
  };
  waiting_.change(put_first);
  put_first(fetching_);
  put_first(running_);
}

StepShares Scheduler::share_next_step() const {
  StepDemand demand = {.decodes_waited = decodes_waited_};
  for (const SequencePtr& sequence : running_) {
    const int num_tokens = sequence->num_plannable();
    if (num_tokens == 1) ++demand.num_decodes;
    if (num_tokens < 2) continue;
    ++demand.num_prompts;
    demand.num_prompt_tokens += num_tokens;
  }
  const int num_places = options_.max_num_seqs - num_running();
  demand.num_prompts += std::min(waiting_.num_sequences(), num_places);
  return share_step(demand,
                    {
                        .max_num_batched_tokens = options_.max_num_batched_tokens,
                        .row_tile = options_.row_tile,
                        .max_prefill_tokens = cost_.max_prefill_tokens(demand.num_prompts),
                        .wants_decodes_alone = cost_.wants_decodes_alone(demand.num_decodes),
                    });
}

// Returns how many blocks of the pool the running sequences need for their part of a step.
int Scheduler::num_blocks_wanted(StepShares shares) const {
  int num_blocks = 0;
  for (const SequencePtr& sequence : running_) {
    const int num_tokens = take_tokens(*sequence, shares);
    if (num_tokens == 0) continue;
    const int begin = sequence->num_planned();
    num_blocks += tables_.num_missing(sequence->block_table_, begin, begin + num_tokens);
  }
  return num_blocks;
}

void Scheduler::plan_step(StepShares shares) {
  plans_.begin();
  decodes_waited_ = !shares.decodes;
  if (plan_running(shares)) admit_waiting(shares);
  plans_.end();
}

// Plans the running sequences in their order, so that a sequence that is preempted is not in the
// plan yet. Returns false if blocks were short.
bool Scheduler::plan_running(StepShares& shares) {
  const std::size_t num_running_before = running_.size();
  bool all_grew = true;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    const bool is_decode = sequence.is_decoding();
    const int wanted = take_tokens(sequence, shares);
    if (wanted == 0) continue;
    const int num_tokens = take_blocks(i, wanted);
    all_grew &= num_tokens == wanted;
    if (!is_decode) shares.num_prefill_tokens += wanted - num_tokens;
    if (num_tokens == 0) continue;  // it keeps its blocks until a sequence before it ends
    plans_.add(sequence.plan(num_tokens), is_decode);
  }
  return all_grew && running_.size() == num_running_before;
}

// Takes blocks for the sequence's next tokens, and preempts fetching and later sequences for them.
// Returns how many tokens have room: 0 if none of those sequences is left.
int Scheduler::take_blocks(std::size_t index, int num_tokens) {
  Sequence& sequence = *running_[index];
  while (true) {
    const int room = grow(sequence, num_tokens);
    if (room > 0) return room;
    if (fetching_.empty() && index + 1 == running_.size()) return room;
    preempt_last();
  }
}

// Takes blocks for the sequence's next tokens, and returns how many tokens have room.
int Scheduler::grow(Sequence& sequence, int num_tokens) {
  const int begin = sequence.num_planned();
  return tables_.extend(sequence.block_table_, begin, begin + num_tokens, sequence.length(),
                        plans_.next().block_copies) -
         begin;
}

// Puts a sequence back into the queue: the last fetching one, or else the last running one.
void Scheduler::preempt_last() {
  if (!fetching_.empty()) {
    fetching_.back()->release_blocks(tables_);
    waiting_.insert(std::move(fetching_.back()));
    return fetching_.pop_back();
  }
  PAGODA_CHECK(plans_.num_in_flight() == 0, "[scheduler] a sequence is preempted in flight");
  SequencePtr sequence = std::move(running_.back());
  running_.pop_back();
  sequence->awaits_mask_ = false;
  tables_.keep_tail(sequence->block_table_, sequence->tokens(), sequence->num_computed());
  sequence->release_blocks(tables_);
  ++counters_.num_preemptions;
  waiting_.insert(std::move(sequence));
}

void Scheduler::admit_waiting(StepShares& shares) {
  while (!waiting_.empty() && shares.num_prefill_tokens > 0) {
    Sequence& head = waiting_.head();
    const Admission admission = try_admit();
    if (admission == Admission::kFetches) continue;
    if (admission != Admission::kAdmitted) return;
    const int num_tokens = grow(head, std::min(head.num_pending(), shares.num_prefill_tokens));
    PAGODA_CHECK(num_tokens > 0, "[scheduler] a sequence was admitted without a block");
    shares.num_prefill_tokens -= num_tokens;
    plans_.add(head.plan(num_tokens), /*is_decode=*/false);
  }
}

// Moves the queue's head, with as many of its forks as have a place, to the running sequences, or
// says why it has to wait. If it waited for places for all forks, the sequences behind it would
// wait too, until all running ones have ended.
Admission Scheduler::try_admit() {
  Sequence& head = waiting_.head();
  const int num_places = options_.max_num_seqs - num_running() - static_cast<int>(fetching_.size());
  if (num_places < 1) return Admission::kNoSequencePlace;
  const int num_forks = std::min(head.num_forks(), num_places - 1);
  head.tokens_.reserve(head.max_num_tokens());
  // This is repeated in each step that the head waits. It takes 1 us for 1,000 cached tokens, and
  // keeps those blocks from being the least recently used.
  head.num_computed_ = tables_.acquire(head.block_table_, head.tokens(), head.num_readable());
  if (!has_blocks_for(head, num_forks)) {
    head.release_blocks(tables_);
    return Admission::kNoBlocks;
  }
  if (!head.has_fetched_ &&
      tables_.begin_fetch(head.block_table_, head.tokens(), head.num_readable())) {
    head.has_fetched_ = true;
    head.num_computed_ = 0;  // its blocks are looked up again after the fetch
    insert_in_order(fetching_, waiting_.pop());
    return Admission::kFetches;
  }
  head.has_fetched_ = false;
  acquire_partial_match(head);
  tables_.give_back(head.block_table_, head.num_computed_);
  head.num_planned_ = head.num_computed_;
  SequencePtr admitted = waiting_.pop();
  if (SequencePtr left = admitted->split_forks(num_forks)) waiting_.insert(std::move(left));
  insert_in_order(running_, std::move(admitted));
  return Admission::kAdmitted;
}

// Returns whether the pool has blocks for one more sequence. Running and fetching sequences need
// blocks for their known tokens. A running one also needs a block to grow into, unless it is at its
// longest. Without these, a sequence that is admitted now would be preempted soon. In groups with a
// window a sequence needs only what its next chunk sees.
bool Scheduler::has_blocks_for(const Sequence& sequence, int num_forks) const {
  const auto num_short = [&](const Sequence& own, int num_blocks, int num_forks_of_own) {
    const int num_new = std::clamp(own.num_pending(), 1, options_.max_num_batched_tokens);
    return tables_.num_short(own.block_table_, num_blocks, num_new) +
           num_forks_of_own * tables_.groups().size();
  };
  std::int64_t num_wanted =
      num_short(sequence, tables_.blocks_for(sequence.num_tokens()), num_forks);
  for (const SequencePtr& other : fetching_)
    num_wanted += num_short(*other, tables_.blocks_for(other->num_tokens()), /*num_forks=*/0);
  for (const SequencePtr& other : running_) {
    const int worst_case = tables_.blocks_for(other->length().max_stored);
    const int num_blocks = std::min(tables_.blocks_for(other->num_tokens()) + 1, worst_case);
    num_wanted += num_short(*other, num_blocks, other->num_forks());
  }
  return (running_.empty() && fetching_.empty()) || num_wanted <= num_free_blocks();
}

// Takes the blocks that have been loaded. A sequence that gets no more of them goes back to its
// place in the queue, before those that arrived after it.
void Scheduler::fetch_blocks() {
  if (fetching_.empty()) return;
  int num_loads = tables_.num_loads_per_step();
  for (SequencePtr& sequence : fetching_) {
    if (tables_.fetch(sequence->block_table_, sequence->tokens(), sequence->length(), num_loads))
      continue;
    sequence->release_blocks(tables_);
    waiting_.insert(std::move(sequence));
  }
  std::erase(fetching_, nullptr);
}

// Takes over or copies the block in which the cached prefix ends, after the full blocks that match.
void Scheduler::acquire_partial_match(Sequence& sequence) {
  if (!tables_.has_cache()) return;
  const int num_left = sequence.num_readable() - sequence.num_computed_;
  sequence.num_computed_ += tables_.acquire_partial_match(
      sequence.block_table_, sequence.tokens().subspan(sequence.num_computed_, num_left),
      sequence.length(), plans_.next().block_copies);
  if (sequence.num_cached_tokens_) return;  // it was counted before it was preempted
  // Report whole blocks only. An exact number would let a client guess, token by token, what others
  // have asked.
  const int num_told = sequence.num_computed_ / options_.block_size * options_.block_size;
  sequence.num_cached_tokens_ = num_told;
  counters_.num_prefix_queries += sequence.num_prompt_tokens();
  counters_.num_prefix_hits += sequence.num_computed_;
  counters_.num_told_prefix_hits += num_told;
}

}  // namespace pagoda
