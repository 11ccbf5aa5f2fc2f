// What a step computes: who decodes, who grows, who is preempted, who is admitted.
#include "engine/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "core/check.h"

namespace pagoda {

Scheduler::Scheduler(SchedulerOptions options, BlockPool& pool, PrefixCache* cache)
    : options_(std::move(options)), tables_(pool, cache, options_.block_size) {
  PAGODA_CHECK(options_.block_size > 0 && options_.max_num_seqs > 0 &&
                   options_.max_num_batched_tokens > 0 && options_.max_model_len > 0,
               "[scheduler] expected positive limits");
  // A decode is one token: with more sequences than tokens some would never be in a step.
  options_.max_num_seqs = std::min(options_.max_num_seqs, options_.max_num_batched_tokens);
  running_.reserve(options_.max_num_seqs);
  for (Plan& plan : plans_) plan.sequences.reserve(options_.max_num_seqs);
  prefills_.reserve(options_.max_num_seqs);
}

int Scheduler::max_num_tokens(int num_prompt_tokens, const SamplingParams& params) const {
  const std::int64_t wanted = std::int64_t{num_prompt_tokens} + params.max_tokens;
  return static_cast<int>(std::min<std::int64_t>(wanted, options_.max_model_len));
}

int Scheduler::worst_case_blocks(int num_prompt_tokens, int max_num_tokens) const {
  return tables_.blocks_for(std::max(num_prompt_tokens, max_num_tokens - 1));
}

// The last token that it may have is sampled, but never computed.
SequenceLength Scheduler::length_of(const Sequence& sequence) {
  return {
      .num_tokens = sequence.num_tokens(),
      .max_stored = std::max(sequence.num_prompt_tokens(), sequence.max_num_tokens() - 1),
  };
}

Admission Scheduler::check(int num_prompt_tokens, const SamplingParams& params) const {
  const int max_tokens = max_num_tokens(num_prompt_tokens, params);
  return worst_case_blocks(num_prompt_tokens, max_tokens) <= tables_.num_blocks()
             ? Admission::kAdmitted
             : Admission::kNeverFits;
}

void Scheduler::add(Request request) {
  const GenerationRequest& generation = request.generation;
  const int num_prompt_tokens = static_cast<int>(generation.prompt_token_ids.size());
  PAGODA_CHECK(check(num_prompt_tokens, generation.sampling) == Admission::kAdmitted,
               fmt::format("[scheduler] request {} can never run", request.id));
  const int max_tokens = max_num_tokens(num_prompt_tokens, generation.sampling);
  // What all samples share: one hash of the salt, one copy of the parameters.
  BlockTable empty_table;
  tables_.open(empty_table, generation.cache_salt);
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
      insert_in_order(waiting_, std::move(sequence));
    }
  }
  num_waiting_forks_ += first->num_forks();
  insert_in_order(waiting_, std::move(first));
}

int Scheduler::num_running() const {
  int num_running = static_cast<int>(running_.size());
  for (const SequencePtr& sequence : running_) num_running += sequence->num_forks();
  return num_running;
}

bool Scheduler::has_prompts() const {
  return !waiting_.empty() ||
         std::any_of(running_.begin(), running_.end(),
                     [](const SequencePtr& sequence) { return num_plannable(*sequence) > 1; });
}

const Plan& Scheduler::plan() {
  PAGODA_CHECK(num_in_flight_ == 0, "[scheduler] a plan is made before the last one is committed");
  look_for_masks();
  give_turn();
  plan_step(share_next_step());
  if (next_plan().empty() && !idle()) {
    // Those whose step it was found no blocks.
    plan_step(
        {.decodes = true, .num_prefill_tokens = options_.max_num_batched_tokens - num_decodes()});
  }
  return next_plan().empty() ? next_plan() : launch();
}

// Nobody can be preempted: a step in flight uses the blocks.
const Plan* Scheduler::plan_ahead() {
  if (num_in_flight_ != 1 || !has_committed_) return nullptr;
  give_turn();
  const StepShares shares = share_next_step();
  if (num_blocks_wanted(shares) > num_free_blocks()) return nullptr;
  number_outcomes();
  plan_step(shares);
  return next_plan().empty() ? nullptr : &launch();
}

void Scheduler::look_for_masks() {
  for (const SequencePtr& sequence : running_) {
    if (sequence->awaits_mask_)
      sequence->awaits_mask_ = !sequence->mask_source_->wait_for_mask(/*deadline=*/{});
  }
}

// Makes the request that came first of those that wait the first of all, once others have overtaken
// them for long enough. It stays that when it runs, too, or it were preempted for those that it
// went before.
void Scheduler::give_turn() {
  const bool some_may_overtake =
      !waiting_.empty() && waiting_.front()->priority() < waiting_.back()->priority();
  if (!some_may_overtake) num_steps_overtaking_ = 0;
  if (num_steps_overtaking_ == 0 || ++num_steps_overtaking_ <= options_.num_steps_per_turn) return;
  num_steps_overtaking_ = 0;
  ++counters_.num_priority_turns;
  const auto came_before = [](const SequencePtr& a, const SequencePtr& b) {
    return a->arrival() < b->arrival();
  };
  const SequencePtr& first = *std::min_element(waiting_.begin(), waiting_.end(), came_before);
  const RequestId request_id = first->request_id();
  const auto put_first = [&](auto& sequences) {
    for (const SequencePtr& sequence : sequences) {
      if (sequence->request_id() != request_id) continue;
      sequence->priority_ = std::numeric_limits<int>::min();
      for (const auto& fork : sequence->forks_) fork->priority_ = sequence->priority_;
    }
    std::stable_sort(sequences.begin(), sequences.end(), runs_before);
  };
  put_first(waiting_);
  put_first(running_);
}

StepShares Scheduler::share_next_step() const {
  StepDemand demand = {.decodes_waited = decodes_waited_};
  for (const SequencePtr& sequence : running_) {
    const int num_tokens = num_plannable(*sequence);
    if (num_tokens == 1) ++demand.num_decodes;
    if (num_tokens < 2) continue;
    ++demand.num_prompts;
    demand.num_prompt_tokens += num_tokens;
  }
  const int num_places = options_.max_num_seqs - num_running();
  demand.num_prompts += std::min(static_cast<int>(waiting_.size()), num_places);
  return share_step(demand,
                    {
                        .max_num_batched_tokens = options_.max_num_batched_tokens,
                        .row_tile = options_.row_tile,
                        .max_prefill_tokens = cost_.max_prefill_tokens(demand.num_prompts),
                        .wants_decodes_alone = cost_.wants_decodes_alone(demand.num_decodes),
                    });
}

// Pending tokens that a step may take now. A sequence that has ended while a step in flight
// computes it has none, nor one whose forks wait for the token of that step, nor one that awaits a
// mask.
int Scheduler::num_plannable(const Sequence& sequence) {
  const bool forks_wait = sequence.num_awaited_ > 0 && sequence.num_forks() > 0;
  if (sequence.finished() || sequence.cancelled_ || forks_wait || sequence.awaits_mask_) return 0;
  return sequence.num_pending();
}

// Of what is left of the shares, which it takes.
int Scheduler::tokens_for(const Sequence& sequence, StepShares& shares) {
  const int num_pending = num_plannable(sequence);
  if (num_pending == 1) return shares.decodes ? 1 : 0;
  const int num_tokens = std::min(num_pending, shares.num_prefill_tokens);
  shares.num_prefill_tokens -= num_tokens;
  return num_tokens;
}

int Scheduler::num_decodes() const {
  return static_cast<int>(
      std::count_if(running_.begin(), running_.end(),
                    [](const SequencePtr& sequence) { return num_plannable(*sequence) == 1; }));
}

// Of the pool's, for what those that run get of a step.
int Scheduler::num_blocks_wanted(StepShares shares) const {
  int num_blocks = 0;
  for (const SequencePtr& sequence : running_) {
    const int num_tokens = tokens_for(*sequence, shares);
    if (num_tokens == 0) continue;
    const int begin = sequence->num_planned();
    num_blocks += tables_.num_missing(sequence->block_table_, begin, begin + num_tokens);
  }
  return num_blocks;
}

// So that the next step's sequences can name theirs.
void Scheduler::number_outcomes() {
  int num_outcomes = 0;
  for (const PlannedSequence& planned : plans_[newest_].sequences) {
    if (!planned.samples) continue;
    planned.sequence->awaited_outcome_ = num_outcomes;
    num_outcomes += 1 + planned.sequence->num_forks();
  }
}

void Scheduler::plan_step(StepShares shares) {
  Plan& plan = next_plan();
  plan.sequences.clear();
  plan.num_tokens = 0;
  plan.num_samples = 0;
  prefills_.clear();
  decodes_waited_ = !shares.decodes;
  if (plan_running(shares)) admit_waiting(shares);
  plan.num_decodes = static_cast<int>(plan.sequences.size());
  plan.sequences.insert(plan.sequences.end(), prefills_.begin(), prefills_.end());
}

// In their order, so that whoever is preempted is not in the plan yet. False: blocks were short.
bool Scheduler::plan_running(StepShares& shares) {
  const std::size_t num_running_before = running_.size();
  bool all_grew = true;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    const bool is_decode = sequence.is_decoding();
    const int wanted = tokens_for(sequence, shares);
    if (wanted == 0) continue;
    const int num_tokens = take_blocks(i, wanted);
    all_grew &= num_tokens == wanted;
    if (!is_decode) shares.num_prefill_tokens += wanted - num_tokens;
    if (num_tokens == 0) continue;  // keeps what it has: who comes before it will end
    plan_chunk(sequence, num_tokens, is_decode);
  }
  return all_grew && running_.size() == num_running_before;
}

// Room for as many of the sequence's next tokens as there are blocks; for one at least, as long as
// somebody behind it can be preempted.
int Scheduler::take_blocks(std::size_t index, int num_tokens) {
  Sequence& sequence = *running_[index];
  while (true) {
    const int room = grow(sequence, num_tokens);
    if (room > 0 || index + 1 == running_.size()) return room;
    preempt_last();
  }
}

// Takes blocks for the sequence's next tokens; returns for how many of them there is room.
int Scheduler::grow(Sequence& sequence, int num_tokens) {
  const int begin = sequence.num_planned();
  return tables_.extend(sequence.block_table_, begin, begin + num_tokens, length_of(sequence),
                        next_plan().block_copies) -
         begin;
}

void Scheduler::preempt_last() {
  PAGODA_CHECK(num_in_flight_ == 0, "[scheduler] a sequence is preempted in flight");
  SequencePtr sequence = std::move(running_.back());
  running_.pop_back();
  sequence->awaits_mask_ = false;
  tables_.keep_tail(sequence->block_table_, sequence->tokens(), sequence->num_computed());
  release_blocks(*sequence);
  ++counters_.num_preemptions;
  num_waiting_forks_ += sequence->num_forks();
  insert_in_order(waiting_, std::move(sequence));
}

void Scheduler::admit_waiting(StepShares& shares) {
  while (!waiting_.empty() && shares.num_prefill_tokens > 0) {
    Sequence& head = *waiting_.front();
    if (try_admit() != Admission::kAdmitted) return;
    const int num_tokens = grow(head, std::min(head.num_pending(), shares.num_prefill_tokens));
    PAGODA_CHECK(num_tokens > 0, "[scheduler] a sequence was admitted without a block");
    shares.num_prefill_tokens -= num_tokens;
    plan_chunk(head, num_tokens, /*is_decode=*/false);
  }
}

// Moves the queue's head to those that run, with as many of its forks as have a place, or says why
// it has to wait. Were all forks to wait for places, so would everybody behind them, until all
// those that run have ended.
Admission Scheduler::try_admit() {
  SequencePtr& head = waiting_.front();
  const int num_places = options_.max_num_seqs - num_running();
  if (num_places < 1) return Admission::kNoSequencePlace;
  const int num_forks = std::min(head->num_forks(), num_places - 1);
  head->tokens_.reserve(head->max_num_tokens());
  // In each step that it waits, which takes 1 us for 1,000 cached tokens, and keeps them from being
  // the least recently used.
  head->num_computed_ = tables_.acquire(head->block_table_, head->tokens(), num_readable(*head));
  if (!has_blocks_for(*head, num_forks)) {
    release_blocks(*head);
    return Admission::kNoBlocks;
  }
  acquire_beginning(*head);
  head->num_planned_ = head->num_computed_;
  num_waiting_forks_ -= head->num_forks();
  SequencePtr left = split_forks(*head, num_forks);
  const bool overtakes = head->priority() < waiting_.back()->priority();
  if (overtakes && num_steps_overtaking_ == 0) num_steps_overtaking_ = 1;
  insert_in_order(running_, std::move(head));
  waiting_.pop_front();
  if (left != nullptr) {
    num_waiting_forks_ += left->num_forks();
    insert_in_order(waiting_, std::move(left));
  }
  return Admission::kAdmitted;
}

// Besides what those that run know of, and a block for each of them to grow into where it may: or
// what is admitted now were preempted soon.
bool Scheduler::has_blocks_for(const Sequence& sequence, int num_forks) const {
  std::int64_t num_wanted =
      tables_.blocks_for(sequence.num_tokens()) + num_forks - sequence.block_table_.num_blocks();
  for (const SequencePtr& other : running_) {
    const int worst_case = worst_case_blocks(other->num_prompt_tokens(), other->max_num_tokens());
    num_wanted += std::min(tables_.blocks_for(other->num_tokens()) + 1, worst_case) +
                  other->num_forks() - other->block_table_.num_blocks();
  }
  return running_.empty() || num_wanted <= num_free_blocks();
}

// The forks past the first `num_kept`, as forks of the first of them; null where there are none.
std::unique_ptr<Sequence> Scheduler::split_forks(Sequence& sequence, int num_kept) {
  if (sequence.num_forks() == num_kept) return nullptr;
  const auto begin = sequence.forks_.begin() + num_kept;
  SequencePtr first = std::move(*begin);
  first->forks_.assign(std::make_move_iterator(begin + 1),
                       std::make_move_iterator(sequence.forks_.end()));
  sequence.forks_.erase(begin, sequence.forks_.end());
  return first;
}

// The last known token is computed whatever the cache has: its logits give the next one. So are the
// rows of a prompt that are still to be scored.
int Scheduler::num_readable(const Sequence& sequence) const {
  const int last = sequence.num_tokens() - 1;
  const bool has_rows_to_score =
      sequence.scores_prompt() && sequence.num_scored_ < sequence.num_prompt_tokens() - 1;
  return has_rows_to_score ? std::min(last, sequence.num_scored_) : last;
}

// Of the block behind those that are cached whole.
void Scheduler::acquire_beginning(Sequence& sequence) {
  if (!tables_.has_cache()) return;
  const int num_left = num_readable(sequence) - sequence.num_computed_;
  sequence.num_computed_ += tables_.acquire_beginning(
      sequence.block_table_, sequence.tokens().subspan(sequence.num_computed_, num_left),
      length_of(sequence), next_plan().block_copies);
  if (sequence.num_cached_tokens_) return;  // it was preempted
  // Told to the token, it would let one guess what others have asked, a token at a time.
  const int num_told = sequence.num_computed_ / options_.block_size * options_.block_size;
  sequence.num_cached_tokens_ = num_told;
  counters_.num_prefix_queries += sequence.num_prompt_tokens();
  counters_.num_prefix_hits += sequence.num_computed_;
  counters_.num_told_prefix_hits += num_told;
}

void Scheduler::plan_chunk(Sequence& sequence, int num_new_tokens, bool is_decode) {
  PlannedSequence planned = {.sequence = &sequence,
                             .first_position = sequence.num_planned(),
                             .num_new_tokens = num_new_tokens};
  const int end = planned.context_len();
  const int num_known = sequence.num_tokens() + sequence.num_awaited_;
  planned.samples = end == num_known && num_known < sequence.max_num_tokens();
  if (end > sequence.num_tokens()) planned.awaited_outcome = sequence.awaited_outcome_;
  if (sequence.scores_prompt()) {
    const int first = std::max(planned.first_position, sequence.num_scored_);
    planned.first_scored_row = first - planned.first_position;
    planned.num_scored_rows = std::max(0, std::min(end, sequence.num_prompt_tokens() - 1) - first);
  }
  ++sequence.num_in_flight_;
  sequence.num_planned_ = end;
  Plan& plan = next_plan();
  plan.num_tokens += num_new_tokens;
  if (planned.samples) {
    ++sequence.num_awaited_;
    plan.num_samples += 1 + sequence.num_forks();
  }
  (is_decode ? plan.sequences : prefills_).push_back(planned);
}

const Plan& Scheduler::launch() {
  if (num_in_flight_ > 0) newest_ = 1 - newest_;
  ++num_in_flight_;
  counters_.num_block_copies += plans_[newest_].block_copies.size();
  return plans_[newest_];
}

}  // namespace pagoda
