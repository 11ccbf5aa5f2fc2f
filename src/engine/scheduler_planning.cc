// What a step computes: its shares, who grows, who is preempted, who is admitted.
#include "engine/scheduler.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "core/check.h"

namespace pagoda {

const Plan& Scheduler::plan() {
  PAGODA_CHECK(num_in_flight_ == 0, "[scheduler] a plan is made before the last one is committed");
  look_for_masks();
  give_turn();
  plan_step(share_step());
  if (next_plan().empty() && !idle()) {
    // Those whose step it was found no blocks.
    plan_step(
        {.decodes = true, .num_prefill_tokens = options_.max_num_batched_tokens - num_decodes()});
  }
  return next_plan().empty() ? next_plan() : launch();
}

void Scheduler::look_for_masks() {
  for (const SequencePtr& sequence : running_) {
    if (sequence->awaits_mask_)
      sequence->awaits_mask_ = !sequence->mask_source_->wait_for_mask(/*deadline=*/{});
  }
}

// Nobody can be preempted: a step in flight uses the blocks.
const Plan* Scheduler::plan_ahead() {
  if (num_in_flight_ != 1 || !has_committed_) return nullptr;
  give_turn();
  const Shares shares = share_step();
  if (num_blocks_wanted(shares) > num_free_blocks()) return nullptr;
  number_outcomes();
  plan_step(shares);
  return next_plan().empty() ? nullptr : &launch();
}

const Plan& Scheduler::launch() {
  if (num_in_flight_ > 0) newest_ = 1 - newest_;
  ++num_in_flight_;
  return plans_[newest_];
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
int Scheduler::tokens_for(const Sequence& sequence, Shares& shares) {
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

bool Scheduler::has_prompts() const {
  return !waiting_.empty() ||
         std::any_of(running_.begin(), running_.end(),
                     [](const SequencePtr& sequence) { return num_plannable(*sequence) > 1; });
}

Scheduler::Shares Scheduler::share_step() const {
  const int num_decodes = this->num_decodes();
  const int budget = options_.max_num_batched_tokens;
  if (num_decodes == 0) return {.decodes = true, .num_prefill_tokens = budget};
  std::int64_t num_prefill_tokens = 0;
  int num_prompts = 0;
  for (const SequencePtr& sequence : running_) {
    const int num_tokens = num_plannable(*sequence);
    if (num_tokens < 2) continue;
    num_prefill_tokens += num_tokens;
    ++num_prompts;
  }
  const int num_places = options_.max_num_seqs - num_running();
  num_prompts += std::min(static_cast<int>(waiting_.size()), num_places);
  if (num_prompts == 0 || cost_.wants_decodes_alone(num_decodes)) return {};
  const int affordable = cost_.max_prefill_tokens(num_prompts);
  const int left = budget - num_decodes;
  if (!decodes_waited_ && left < budget / 4 &&
      left < std::min<std::int64_t>(affordable, num_prefill_tokens)) {
    return {.decodes = false, .num_prefill_tokens = std::min(budget, affordable)};
  }
  return {.decodes = true,
          .num_prefill_tokens = std::min(left, whole_tiles(affordable, num_decodes))};
}

// The most prompt tokens up to `num_tokens` that fill tiles with the decodes; all of them where
// that would leave out half: a context's keys and values are read once a step, for however few
// tokens.
int Scheduler::whole_tiles(int num_tokens, int num_decodes) const {
  const int tile = options_.row_tile;
  const int first = tile - num_decodes % tile;  // that fill what the decodes began
  const int whole = first + (num_tokens - first) / tile * tile;
  return num_tokens < first || whole <= num_tokens - whole ? num_tokens : whole;
}

// Of the pool's, for what those that run get of a step.
int Scheduler::num_blocks_wanted(Shares shares) const {
  int num_blocks = 0;
  for (const SequencePtr& sequence : running_) {
    const int num_tokens = tokens_for(*sequence, shares);
    if (num_tokens == 0) continue;
    const int num_planned = sequence->num_planned();
    num_blocks +=
        num_blocks_of(num_planned + num_tokens) - static_cast<int>(sequence->block_table_.size());
    const bool begins_block = num_planned % options_.block_size == 0;
    if (!begins_block && is_shared(sequence->block_table_[num_planned / options_.block_size]))
      ++num_blocks;
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

void Scheduler::plan_step(Shares shares) {
  Plan& plan = next_plan();
  plan.sequences.clear();
  plan.num_tokens = 0;
  plan.num_samples = 0;
  plan.block_copies.clear();
  prefills_.clear();
  decodes_waited_ = !shares.decodes;
  if (plan_running(shares)) admit_waiting(shares);
  plan.num_decodes = static_cast<int>(plan.sequences.size());
  plan.sequences.insert(plan.sequences.end(), prefills_.begin(), prefills_.end());
}

// In their order, so that whoever is preempted is not in the plan yet. False: blocks were short.
bool Scheduler::plan_running(Shares& shares) {
  const std::size_t num_running_before = running_.size();
  bool all_grew = true;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    const bool is_decode = sequence.num_pending() == 1;
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

// Extends the sequence's table; returns for how many of the next tokens there is room.
int Scheduler::grow(Sequence& sequence, int num_tokens) {
  const int end = sequence.num_planned() + num_tokens;
  if (!copy_shared_block(sequence)) return 0;
  // What the cache has to give up for it goes at once: a run may come free.
  const int num_missing = num_blocks_of(end) - static_cast<int>(sequence.block_table_.size());
  while (cache_ != nullptr && pool_.num_free() < num_missing && cache_->evict()) continue;
  for (int i = 0; i < num_missing; ++i) {
    const std::optional<int> block_id = pool_.allocate(next_block_of(sequence));
    if (!block_id) break;
    sequence.block_table_.push_back(*block_id);
  }
  const std::int64_t room =
      std::int64_t{options_.block_size} * static_cast<int>(sequence.block_table_.size());
  return static_cast<int>(std::min<std::int64_t>(end, room)) - sequence.num_planned();
}

// By sequences, not by steps' copies that read it.
bool Scheduler::is_shared(int block_id) const {
  const auto reads_it = [block_id](const PlannedCopy& copy) { return copy.source == block_id; };
  std::ptrdiff_t num_sequences = pool_.num_holders(block_id);
  for (const Plan& plan : plans_)
    num_sequences -= std::count_if(plan.block_copies.begin(), plan.block_copies.end(), reads_it);
  return num_sequences > 1;
}

// The block that the sequence's next token goes to, where others hold it and it has tokens already.
// False: there is none to copy it into.
bool Scheduler::copy_shared_block(Sequence& sequence) {
  const int num_tokens = sequence.num_planned() % options_.block_size;
  if (num_tokens == 0) return true;
  int& block_id = sequence.block_table_[sequence.num_planned() / options_.block_size];
  if (!is_shared(block_id)) return true;
  const std::optional<int> own = allocate_block({});
  if (!own) return false;
  // The sequence's hold of the source is the plan's until the commit.
  next_plan().block_copies.push_back(
      {.source = block_id, .destination = *own, .num_tokens = num_tokens});
  ++counters_.num_block_copies;
  block_id = *own;
  ++sequence.table_epoch_;
  return true;
}

void Scheduler::preempt_last() {
  PAGODA_CHECK(num_in_flight_ == 0, "[scheduler] a sequence is preempted in flight");
  SequencePtr sequence = std::move(running_.back());
  running_.pop_back();
  sequence->awaits_mask_ = false;
  cache_tail(*sequence);
  release_blocks(*sequence);
  ++counters_.num_preemptions;
  num_waiting_forks_ += sequence->num_forks();
  insert_in_order(waiting_, std::move(sequence));
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

void Scheduler::admit_waiting(Shares& shares) {
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
  // All the memory that its steps will need, now.
  head->tokens_.reserve(head->max_num_tokens());
  head->block_table_.reserve(worst_case_blocks(head->num_prompt_tokens(), head->max_num_tokens()));
  // In each step that it waits, which takes 1 us for 1,000 cached tokens, and keeps them from being
  // the least recently used.
  acquire_prefix(*head);
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

// Besides what those that run know of, and a block for each of them to grow into where it may: or
// what is admitted now were preempted soon.
bool Scheduler::has_blocks_for(const Sequence& sequence, int num_forks) const {
  std::int64_t num_wanted = num_blocks_of(sequence.num_tokens()) + num_forks -
                            static_cast<int>(sequence.block_table_.size());
  for (const SequencePtr& other : running_) {
    const int worst_case = worst_case_blocks(other->num_prompt_tokens(), other->max_num_tokens());
    num_wanted += std::min(num_blocks_of(other->num_tokens()) + 1, worst_case) +
                  other->num_forks() - static_cast<int>(other->block_table_.size());
  }
  return running_.empty() || num_wanted <= num_free_blocks();
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

}  // namespace pagoda
