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

Scheduler::Scheduler(SchedulerOptions options, BlockPool& pool, PrefixCache* cache)
    : options_(std::move(options)), pool_(pool), cache_(cache) {
  PAGODA_CHECK(options_.block_size > 0 && options_.max_num_seqs > 0 &&
                   options_.max_num_batched_tokens > 0 && options_.max_model_len > 0,
               "[scheduler] expected positive limits");
  // A decode is one token: with more sequences than tokens some would never be in a step.
  options_.max_num_seqs = std::min(options_.max_num_seqs, options_.max_num_batched_tokens);
  running_.reserve(options_.max_num_seqs);
  plan_.sequences.reserve(options_.max_num_seqs);
  prefills_.reserve(options_.max_num_seqs);
}

int Scheduler::max_num_tokens(int num_prompt_tokens, const SamplingParams& params) const {
  const std::int64_t wanted = std::int64_t{num_prompt_tokens} + params.max_tokens;
  return static_cast<int>(std::min<std::int64_t>(wanted, options_.max_model_len));
}

int Scheduler::num_blocks_of(int num_tokens) const {
  return (num_tokens + options_.block_size - 1) / options_.block_size;
}

int Scheduler::worst_case_blocks(int num_prompt_tokens, int max_num_tokens) const {
  // The last token is sampled, but never computed.
  return num_blocks_of(std::max(num_prompt_tokens, max_num_tokens - 1));
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
  std::unique_ptr<Sequence> first;
  for (int sample = 0; sample < request.params.n; ++sample) {
    auto sequence = std::make_unique<Sequence>(request, sample, next_arrival_++, max_tokens);
    if (cache_ != nullptr) sequence->chain_.scope = cache_->scope(request.cache_salt);
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
    if (sequence.in_flight_) return;
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

const Plan& Scheduler::plan() {
  const int num_decodes = static_cast<int>(
      std::count_if(running_.begin(), running_.end(),
                    [](const SequencePtr& sequence) { return sequence->num_pending() == 1; }));
  plan_step(share_step(num_decodes));
  if (plan_.empty() && !idle()) {
    // Those whose step it was found no blocks.
    plan_step(
        {.decodes = true, .num_prefill_tokens = options_.max_num_batched_tokens - num_decodes});
  }
  return plan_;
}

Scheduler::Shares Scheduler::share_step(int num_decodes) const {
  const int budget = options_.max_num_batched_tokens;
  if (num_decodes == 0) return {.decodes = true, .num_prefill_tokens = budget};
  std::int64_t num_prefill_tokens = 0;
  for (const SequencePtr& sequence : running_) num_prefill_tokens += sequence->num_pending();
  num_prefill_tokens -= num_decodes;
  const bool prompts_wait = num_prefill_tokens > 0 || !waiting_.empty();
  if (prompts_wait && cost_.wants_decodes_alone(num_decodes)) return {};
  const int affordable = cost_.max_prefill_tokens();
  const int left = budget - num_decodes;
  if (!decodes_waited_ && left < budget / 4 &&
      left < std::min<std::int64_t>(affordable, num_prefill_tokens)) {
    return {.decodes = false, .num_prefill_tokens = std::min(budget, affordable)};
  }
  return {.decodes = true, .num_prefill_tokens = std::min(left, affordable)};
}

void Scheduler::plan_step(Shares shares) {
  plan_.sequences.clear();
  plan_.num_tokens = 0;
  plan_.num_samples = 0;
  plan_.block_copies.clear();
  prefills_.clear();
  decodes_waited_ = !shares.decodes;
  if (plan_running(shares)) admit_waiting(shares);
  plan_.num_decodes = static_cast<int>(plan_.sequences.size());
  plan_.sequences.insert(plan_.sequences.end(), prefills_.begin(), prefills_.end());
}

// In their order, so that whoever is preempted is not in the plan yet. False: blocks were short.
bool Scheduler::plan_running(Shares& shares) {
  const std::size_t num_running_before = running_.size();
  bool all_grew = true;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    const bool is_decode = sequence.num_pending() == 1;
    if (is_decode && !shares.decodes) continue;
    const int wanted = is_decode ? 1 : std::min(sequence.num_pending(), shares.num_prefill_tokens);
    if (wanted == 0) continue;
    const int num_tokens = take_blocks(i, wanted);
    all_grew &= num_tokens == wanted;
    if (num_tokens == 0) continue;  // keeps what it has: who comes before it will end
    if (!is_decode) shares.num_prefill_tokens -= num_tokens;
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
  const int end = sequence.num_computed() + num_tokens;
  if (!copy_shared_block(sequence)) return 0;
  while (static_cast<int>(sequence.block_table_.size()) < num_blocks_of(end)) {
    const std::optional<int> block_id = allocate_block();
    if (!block_id) break;
    sequence.block_table_.push_back(*block_id);
  }
  const std::int64_t room =
      std::int64_t{options_.block_size} * static_cast<int>(sequence.block_table_.size());
  return static_cast<int>(std::min<std::int64_t>(end, room)) - sequence.num_computed();
}

// By sequences, not by the step's copies that read it.
bool Scheduler::is_shared(int block_id) const {
  const auto reads_it = [block_id](const PlannedCopy& copy) { return copy.source == block_id; };
  return pool_.num_holders(block_id) -
             std::count_if(plan_.block_copies.begin(), plan_.block_copies.end(), reads_it) >
         1;
}

// The block that the sequence's next token goes to, where others hold it and it has tokens already.
// False: there is none to copy it into.
bool Scheduler::copy_shared_block(Sequence& sequence) {
  const int num_tokens = sequence.num_computed() % options_.block_size;
  if (num_tokens == 0) return true;
  int& block_id = sequence.block_table_[sequence.num_computed() / options_.block_size];
  if (!is_shared(block_id)) return true;
  const std::optional<int> own = allocate_block();
  if (!own) return false;
  // The sequence's hold of the source is the plan's until the commit.
  plan_.block_copies.push_back({.source = block_id, .destination = *own, .num_tokens = num_tokens});
  ++counters_.num_block_copies;
  block_id = *own;
  ++sequence.table_epoch_;
  return true;
}

void Scheduler::preempt_last() {
  SequencePtr sequence = std::move(running_.back());
  running_.pop_back();
  cache_tail(*sequence);
  release_blocks(*sequence);
  ++counters_.num_preemptions;
  num_waiting_forks_ += sequence->num_forks();
  insert_in_order(waiting_, std::move(sequence));
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

// Moves the queue's head to those that run, or says why it has to wait.
Admission Scheduler::try_admit() {
  SequencePtr& head = waiting_.front();
  if (num_running() + 1 + head->num_forks() > options_.max_num_seqs)
    return Admission::kNoSequencePlace;
  // All the memory that its steps will need, now.
  head->tokens_.reserve(head->max_num_tokens());
  head->block_table_.reserve(worst_case_blocks(head->num_prompt_tokens(), head->max_num_tokens()));
  acquire_prefix(*head);
  if (!has_blocks_for(*head)) {
    release_blocks(*head);
    return Admission::kNoBlocks;
  }
  acquire_beginning(*head);
  num_waiting_forks_ -= head->num_forks();
  insert_in_order(running_, std::move(head));
  waiting_.pop_front();
  return Admission::kAdmitted;
}

// Besides what those that run know of, and a block for each of them to grow into where it may: or
// what is admitted now were preempted soon.
bool Scheduler::has_blocks_for(const Sequence& sequence) const {
  std::int64_t num_wanted = num_blocks_of(sequence.num_tokens()) + sequence.num_forks() -
                            static_cast<int>(sequence.block_table_.size());
  for (const SequencePtr& other : running_) {
    const int worst_case = worst_case_blocks(other->num_prompt_tokens(), other->max_num_tokens());
    num_wanted += std::min(num_blocks_of(other->num_tokens()) + 1, worst_case) +
                  other->num_forks() - static_cast<int>(other->block_table_.size());
  }
  return running_.empty() || num_wanted <= num_free_blocks();
}

void Scheduler::plan_chunk(Sequence& sequence, int num_new_tokens, bool is_decode) {
  PAGODA_CHECK(!sequence.in_flight_, "[scheduler] a plan is made before the last one is committed");
  PlannedSequence planned = {.sequence = &sequence,
                             .first_position = sequence.num_computed(),
                             .num_new_tokens = num_new_tokens};
  const int end = planned.context_len();
  planned.samples =
      end == sequence.num_tokens() && sequence.num_tokens() < sequence.max_num_tokens();
  if (sequence.scores_prompt()) {
    const int first = std::max(planned.first_position, sequence.num_scored_);
    planned.first_scored_row = first - planned.first_position;
    planned.num_scored_rows = std::max(0, std::min(end, sequence.num_prompt_tokens() - 1) - first);
  }
  sequence.in_flight_ = true;
  plan_.num_tokens += num_new_tokens;
  if (planned.samples) plan_.num_samples += 1 + sequence.num_forks();
  (is_decode ? plan_.sequences : prefills_).push_back(planned);
}

void Scheduler::commit(const Plan& plan, std::span<const SampleOutcome> outcomes, double seconds) {
  PAGODA_CHECK(
      static_cast<int>(outcomes.size()) == plan.num_samples,
      fmt::format("[scheduler] expected {} outcomes, got {}", plan.num_samples, outcomes.size()));
  release_copy_sources();
  cost_.observe(plan.num_decodes, plan.num_tokens - plan.num_decodes, seconds);
  for (const PlannedSequence& planned : plan.sequences) {
    const std::size_t count = planned.samples ? 1 + planned.sequence->num_forks() : 0;
    commit_sequence(planned, outcomes.first(count));
    outcomes = outcomes.subspan(count);
  }
  collect_finished(running_);
}

// outcomes: the sequence's, then its forks'; none where it does not sample.
void Scheduler::commit_sequence(const PlannedSequence& planned,
                                std::span<const SampleOutcome> outcomes) {
  Sequence& sequence = *planned.sequence;
  sequence.in_flight_ = false;
  sequence.num_computed_ = planned.context_len();
  sequence.num_scored_ = std::max(
      sequence.num_scored_, std::min(planned.context_len(), sequence.num_prompt_tokens() - 1));
  if (cache_ != nullptr) {
    const bool replaced = cache_->insert(sequence.chain_, sequence.tokens(), sequence.num_computed_,
                                         sequence.block_table_);
    if (replaced) ++sequence.table_epoch_;
  }
  const bool is_all = outcomes.empty() && sequence.num_pending() == 0;  // nothing is to be sampled
  if (!outcomes.empty()) start_forks(sequence, outcomes.subspan(1));
  if (is_all) end_forks(sequence, FinishReason::kLength);
  drop_cancelled_forks(sequence);
  if (sequence.cancelled_) {
    finish(sequence, FinishReason::kCancelled);
  } else if (is_all) {
    finish(sequence, FinishReason::kLength);
  } else if (!outcomes.empty()) {
    append(sequence, outcomes.front());
  }
}

// The prompt is computed: each fork runs by itself from here on, in the same blocks.
void Scheduler::start_forks(Sequence& sequence, std::span<const SampleOutcome> outcomes) {
  for (int i = 0; i < sequence.num_forks(); ++i) {
    SequencePtr fork = std::move(sequence.forks_[i]);
    fork->tokens_.reserve(fork->max_num_tokens());
    fork->block_table_.reserve(sequence.block_table_.capacity());
    fork->block_table_ = sequence.block_table_;
    for (const int block_id : fork->block_table_) pool_.retain(block_id);
    fork->chain_ = sequence.chain_;
    fork->num_computed_ = sequence.num_computed_;
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
  fork.chain_ = std::move(sequence.chain_);
  fork.num_computed_ = std::exchange(sequence.num_computed_, 0);
  fork.num_cached_tokens_ = sequence.num_cached_tokens_;
  fork.tokens_.reserve(fork.max_num_tokens());
}

void Scheduler::fail(const Plan& plan, const Status& status) {
  release_copy_sources();
  for (const PlannedSequence& planned : plan.sequences) {
    Sequence& sequence = *planned.sequence;
    sequence.in_flight_ = false;
    sequence.error_ = status;
    sequence.num_computed_ = 0;  // what the step wrote or copied is nothing to keep
    end_forks(sequence, FinishReason::kError);
    if (sequence.cancelled_) sequence.error_ = ok_status();
    finish(sequence, sequence.cancelled_ ? FinishReason::kCancelled : FinishReason::kError);
  }
  collect_finished(running_);
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
  if (sequence.num_forks() > 0) hand_over(sequence);
  if (reason != FinishReason::kError) cache_tail(sequence);
  release_blocks(sequence);
}

std::optional<int> Scheduler::allocate_block() {
  if (pool_.num_free() == 0 && cache_ != nullptr) cache_->evict();
  return pool_.allocate();
}

void Scheduler::release_block(int block_id) {
  if (cache_ != nullptr) {
    cache_->release(block_id);
  } else {
    pool_.release(block_id);
  }
}

// The last one first: the pool hands them out again in their order, and the cache evicts children
// before parents.
void Scheduler::release_blocks(Sequence& sequence) {
  for (auto block = sequence.block_table_.rbegin(); block != sequence.block_table_.rend();
       ++block) {
    release_block(*block);
  }
  sequence.block_table_.clear();
  ++sequence.table_epoch_;
  sequence.chain_.num_cached_blocks = 0;
  sequence.num_computed_ = 0;
}

// The last known token is computed whatever the cache has: its logits give the next one. So are the
// rows of a prompt that are still to be scored.
int Scheduler::num_readable(const Sequence& sequence) const {
  const int last = sequence.num_tokens() - 1;
  const bool has_rows_to_score =
      sequence.scores_prompt() && sequence.num_scored_ < sequence.num_prompt_tokens() - 1;
  return has_rows_to_score ? std::min(last, sequence.num_scored_) : last;
}

void Scheduler::acquire_prefix(Sequence& sequence) {
  if (cache_ == nullptr) return;
  sequence.num_computed_ = cache_->acquire(sequence.chain_, sequence.tokens(),
                                           num_readable(sequence), sequence.block_table_);
}

// Of the block behind those that are cached whole.
void Scheduler::acquire_beginning(Sequence& sequence) {
  if (cache_ == nullptr) return;
  const int num_left = num_readable(sequence) - sequence.num_computed_;
  const PrefixCache::Beginning beginning =
      cache_->find_beginning(sequence.chain_, sequence.block_table_,
                             sequence.tokens().subspan(sequence.num_computed_, num_left));
  if (beginning.num_tokens > 0 && copy_beginning(sequence, beginning))
    sequence.num_computed_ += beginning.num_tokens;
  if (sequence.num_cached_tokens_) return;  // it was preempted
  sequence.num_cached_tokens_ = sequence.num_computed_;
  counters_.num_prefix_queries += sequence.num_prompt_tokens();
  counters_.num_prefix_hits += sequence.num_computed_;
}

// Into a fresh block. A tail that the sequence goes on from is taken over instead, if nobody reads
// it in this step; one that it leaves before its end only where there is no fresh block.
bool Scheduler::copy_beginning(Sequence& sequence, const PrefixCache::Beginning& beginning) {
  const int source = beginning.block_id;
  const bool can_take_over = beginning.is_tail && pool_.num_holders(source) == 1;
  std::optional<int> block_id;
  if (!can_take_over || !beginning.is_whole) {
    cache_->hold(source);  // until the commit
    block_id = allocate_block();
    if (!block_id) cache_->release(source);
  }
  if (block_id) {
    plan_.block_copies.push_back(
        {.source = source, .destination = *block_id, .num_tokens = beginning.num_tokens});
    ++counters_.num_block_copies;
  } else if (can_take_over) {
    cache_->take_over(source);
    block_id = source;
  } else {
    return false;
  }
  sequence.block_table_.push_back(*block_id);
  return true;
}

// The sequence's last block, where it is not full.
void Scheduler::cache_tail(Sequence& sequence) {
  const int num_tokens = sequence.num_computed_ % options_.block_size;
  if (cache_ == nullptr || num_tokens == 0) return;
  const int num_full = sequence.num_computed_ / options_.block_size;
  if (sequence.chain_.num_cached_blocks != num_full) return;
  // Blocks behind it hold nothing yet.
  while (static_cast<int>(sequence.block_table_.size()) > num_full + 1) {
    release_block(sequence.block_table_.back());
    sequence.block_table_.pop_back();
  }
  const auto tokens = sequence.tokens().subspan(sequence.num_computed_ - num_tokens, num_tokens);
  if (cache_->insert_tail(sequence.chain_, sequence.block_table_, tokens))
    sequence.block_table_.pop_back();
}

void Scheduler::release_copy_sources() {
  for (const PlannedCopy& copy : plan_.block_copies) release_block(copy.source);
  plan_.block_copies.clear();
}

// The first fork of one that has ended takes its place.
template <typename Sequences>
void Scheduler::collect_finished(Sequences& sequences) {
  for (SequencePtr& sequence : sequences) {
    if (!sequence->finished()) continue;
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

}  // namespace pagoda
