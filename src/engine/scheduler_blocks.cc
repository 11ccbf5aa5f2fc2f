// Whose blocks are whose: taken, given back, shared through the prefix cache.
#include "engine/scheduler.h"

#include <algorithm>

namespace pagoda {

namespace {

// Most answers are shorter than this, or than what they answer: kept free behind a sequence that
// may grow, as far as it may. One that outgrows it goes on elsewhere, and a few runs are read as
// fast as one.
constexpr int kExpectedGrowth = 1024;  // tokens

}  // namespace

BlockWish Scheduler::next_block_of(const Sequence& sequence) const {
  const std::vector<int>& table = sequence.block_table_;
  const int num_blocks = num_blocks_of(sequence.num_tokens());
  const int most = worst_case_blocks(sequence.num_prompt_tokens(), sequence.max_num_tokens());
  return {.after = table.empty() ? -1 : table.back(),
          .num_blocks = num_blocks - static_cast<int>(table.size()),
          .num_growth = std::clamp(most - num_blocks, 0,
                                   std::max(num_blocks_of(kExpectedGrowth), num_blocks))};
}

std::optional<int> Scheduler::allocate_block(const BlockWish& wish) {
  if (pool_.num_free() == 0 && cache_ != nullptr) cache_->evict();
  return pool_.allocate(wish);
}

void Scheduler::release_block(int block_id) {
  if (cache_ != nullptr) {
    cache_->release(block_id);
  } else {
    pool_.release(block_id);
  }
}

// The last one first: the cache evicts children before parents.
void Scheduler::release_blocks(Sequence& sequence) {
  for (auto block = sequence.block_table_.rbegin(); block != sequence.block_table_.rend();
       ++block) {
    release_block(*block);
  }
  sequence.block_table_.clear();
  ++sequence.table_epoch_;
  sequence.chain_.num_cached_blocks = 0;
  sequence.num_computed_ = sequence.num_planned_ = 0;
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
  // Told to the token, it would let one guess what others have asked, a token at a time.
  const int num_told = sequence.num_computed_ / options_.block_size * options_.block_size;
  sequence.num_cached_tokens_ = num_told;
  counters_.num_prefix_queries += sequence.num_prompt_tokens();
  counters_.num_prefix_hits += sequence.num_computed_;
  counters_.num_told_prefix_hits += num_told;
}

// Into a fresh block. A tail that the sequence goes on from is taken over instead, if nobody reads
// it in this step; one that it leaves before its end only where there is no fresh block.
bool Scheduler::copy_beginning(Sequence& sequence, const PrefixCache::Beginning& beginning) {
  const int source = beginning.block_id;
  const bool can_take_over = beginning.is_tail && pool_.num_holders(source) == 1;
  std::optional<int> block_id;
  if (!can_take_over || !beginning.is_whole) {
    cache_->hold(source);  // until the commit
    block_id = allocate_block(next_block_of(sequence));
    if (!block_id) cache_->release(source);
  }
  if (block_id) {
    next_plan().block_copies.push_back(
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

// The full ones that are computed. Those that give way to cached ones are read by steps in flight.
void Scheduler::cache_blocks(Sequence& sequence) {
  if (cache_ == nullptr) return;
  const std::size_t num_before = replaced_blocks_.size();
  cache_->insert(sequence.chain_, sequence.tokens(), sequence.num_computed_, sequence.block_table_,
                 replaced_blocks_);
  if (replaced_blocks_.size() == num_before) return;
  ++sequence.table_epoch_;
  if (sequence.num_in_flight_ > 0) return;
  for (std::size_t i = num_before; i < replaced_blocks_.size(); ++i)
    release_block(replaced_blocks_[i]);
  replaced_blocks_.resize(num_before);
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

// What nobody but a step that is over held.
void Scheduler::release_step_blocks(Plan& plan) {
  for (const PlannedCopy& copy : plan.block_copies) release_block(copy.source);
  plan.block_copies.clear();
  for (const int block_id : replaced_blocks_) release_block(block_id);
  replaced_blocks_.clear();
}

}  // namespace pagoda
