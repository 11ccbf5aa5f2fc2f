#include "kv/block_tables.h"

#include <algorithm>

namespace pagoda {
namespace {

// Most answers are shorter than this, or than what they answer: kept free behind a sequence that
// may grow, as far as it may. One that outgrows it goes on elsewhere, and a few runs are read as
// fast as one.
constexpr int kExpectedGrowth = 1024;  // tokens

}  // namespace

BlockTables::BlockTables(BlockPool& pool, PrefixCache* cache, int block_size)
    : pool_(pool), cache_(cache), block_size_(block_size), num_copying_(pool.num_blocks()) {}

void BlockTables::open(BlockTable& table, std::string_view cache_salt) const {
  if (cache_ != nullptr) table.chain_.scope = cache_->scope(cache_salt);
}

int BlockTables::acquire(BlockTable& table, std::span<const int> tokens, int limit) {
  return cache_ == nullptr ? 0 : cache_->acquire(table.chain_, tokens, limit, table.ids_);
}

bool BlockTables::begin_fetch(BlockTable& table, std::span<const int> tokens, int limit) {
  if (cache_ == nullptr) return false;
  table.fetch_ = cache_->begin_fetch(table.chain_, tokens, limit);
  return table.fetch_.has_value();
}

bool BlockTables::fetch(BlockTable& table, std::span<const int> tokens,
                        const SequenceLength& length, int& num_loads) {
  BlockTier& tier = *cache_->tier();
  while (true) {
    if (cache_->acquire_next(table.chain_, table.ids_)) {  // somebody else has computed it
      tier.pass(*table.fetch_);
      continue;
    }
    const BlockTier::Arrival arrival = tier.arrival(*table.fetch_);
    if (arrival == BlockTier::Arrival::kNever) return false;
    if (arrival == BlockTier::Arrival::kAwaited || num_loads == 0) return true;
    const std::optional<int> block_id = allocate(next_block_of(table, length));
    if (!block_id) return false;
    tier.load(*table.fetch_, *block_id);
    table.ids_.push_back(*block_id);
    keep(table, tokens, block_size_ * table.num_blocks(), /*in_flight=*/false);
    --num_loads;
  }
}

int BlockTables::acquire_beginning(BlockTable& table, std::span<const int> tokens,
                                   const SequenceLength& length, std::vector<PlannedCopy>& copies) {
  if (cache_ == nullptr) return 0;
  const PrefixCache::Beginning beginning = cache_->find_beginning(table.chain_, table.ids_, tokens);
  if (beginning.num_tokens == 0) return 0;
  const int source = beginning.block_id;
  // One that a step reads is copied, and so is one that the sequence leaves before its end, unless
  // there is no fresh block.
  const bool can_adopt = beginning.is_tail && pool_.num_holders(source) == 1;
  std::optional<int> block_id;
  if (!can_adopt || !beginning.is_whole) {
    cache_->hold(source);  // until the step is over
    block_id = allocate(next_block_of(table, length));
    if (!block_id) cache_->release(source);
  }
  if (block_id) {
    add_copy({.source = source, .destination = *block_id, .num_tokens = beginning.num_tokens},
             copies);
  } else if (can_adopt) {
    cache_->transfer(source);
    block_id = source;
  } else {
    return 0;
  }
  table.ids_.push_back(*block_id);
  return beginning.num_tokens;
}

int BlockTables::extend(BlockTable& table, int begin, int end, const SequenceLength& length,
                        std::vector<PlannedCopy>& copies) {
  table.ids_.reserve(blocks_for(length.max_stored));  // all that its steps will need, now
  if (!copy_shared_block(table, begin, copies)) return begin;
  // The cache gives up all that is needed at once: a run may come free.
  const int num_missing = blocks_for(end) - table.num_blocks();
  while (cache_ != nullptr && pool_.num_free() < num_missing && cache_->evict()) continue;
  for (int i = 0; i < num_missing; ++i) {
    const std::optional<int> block_id = pool_.allocate(next_block_of(table, length));
    if (!block_id) break;
    table.ids_.push_back(*block_id);
  }
  const std::int64_t room = std::int64_t{block_size_} * table.num_blocks();
  return static_cast<int>(std::min<std::int64_t>(end, room));
}

int BlockTables::num_missing(const BlockTable& table, int begin, int end) const {
  const bool copies = begin % block_size_ != 0 && is_shared(table.ids_[begin / block_size_]);
  return blocks_for(end) - table.num_blocks() + (copies ? 1 : 0);
}

void BlockTables::share(const BlockTable& from, BlockTable& to) {
  to.ids_.reserve(from.ids_.capacity());
  to.ids_ = from.ids_;
  for (const int block_id : to.ids_) pool_.retain(block_id);
  to.chain_ = from.chain_;
}

void BlockTables::keep(BlockTable& table, std::span<const int> tokens, int num_computed,
                       bool in_flight) {
  if (cache_ == nullptr) return;
  const std::size_t num_before = replaced_.size();
  cache_->insert(table.chain_, tokens, num_computed, table.ids_, replaced_);
  if (replaced_.size() == num_before) return;
  ++table.epoch_;
  if (in_flight) return;
  for (std::size_t i = num_before; i < replaced_.size(); ++i) release(replaced_[i]);
  replaced_.resize(num_before);
}

void BlockTables::keep_tail(BlockTable& table, std::span<const int> tokens, int num_computed) {
  const int num_tokens = num_computed % block_size_;
  if (cache_ == nullptr || num_tokens == 0) return;
  const int num_full = num_computed / block_size_;
  if (table.chain_.num_cached_blocks != num_full) return;
  // Blocks behind it hold nothing yet.
  while (table.num_blocks() > num_full + 1) {
    release(table.ids_.back());
    table.ids_.pop_back();
  }
  if (cache_->insert_tail(table.chain_, table.ids_,
                          tokens.subspan(num_computed - num_tokens, num_tokens))) {
    table.ids_.pop_back();
  }
}

// The last one first: the cache evicts children before parents.
void BlockTables::release(BlockTable& table) {
  if (table.fetch_) cache_->tier()->end_fetch(*table.fetch_);
  table.fetch_.reset();
  for (auto block = table.ids_.rbegin(); block != table.ids_.rend(); ++block) release(*block);
  table.ids_.clear();
  ++table.epoch_;
  table.chain_.num_cached_blocks = 0;
}

void BlockTables::end_step(std::vector<PlannedCopy>& copies) {
  for (const PlannedCopy& copy : copies) {
    --num_copying_[copy.source];
    release(copy.source);
  }
  copies.clear();
  for (const int block_id : replaced_) release(block_id);
  replaced_.clear();
}

// By tables and the cache, not by copies that read it.
bool BlockTables::is_shared(int block_id) const {
  return pool_.num_holders(block_id) - num_copying_[block_id] > 1;
}

// The block that the token at `begin` goes to, where others hold it and it has tokens already.
// False: there is none to copy it into.
bool BlockTables::copy_shared_block(BlockTable& table, int begin,
                                    std::vector<PlannedCopy>& copies) {
  const int num_tokens = begin % block_size_;
  if (num_tokens == 0) return true;
  int& block_id = table.ids_[begin / block_size_];
  if (!is_shared(block_id)) return true;
  const std::optional<int> own = allocate({});
  if (!own) return false;
  // The table's hold of the source becomes the copy's.
  add_copy({.source = block_id, .destination = *own, .num_tokens = num_tokens}, copies);
  block_id = *own;
  ++table.epoch_;
  return true;
}

void BlockTables::add_copy(const PlannedCopy& copy, std::vector<PlannedCopy>& copies) {
  ++num_copying_[copy.source];
  copies.push_back(copy);
}

BlockWish BlockTables::next_block_of(const BlockTable& table, const SequenceLength& length) const {
  const int num_blocks = blocks_for(length.num_tokens);
  const int most = blocks_for(length.max_stored);
  return {.after = table.ids_.empty() ? -1 : table.ids_.back(),
          .num_blocks = num_blocks - table.num_blocks(),
          .num_growth =
              std::clamp(most - num_blocks, 0, std::max(blocks_for(kExpectedGrowth), num_blocks))};
}

std::optional<int> BlockTables::allocate(const BlockWish& wish) {
  if (pool_.num_free() == 0 && cache_ != nullptr) cache_->evict();
  return pool_.allocate(wish);
}

void BlockTables::release(int block_id) {
  if (cache_ != nullptr) {
    cache_->release(block_id);
  } else {
    pool_.release(block_id);
  }
}

}  // namespace pagoda
