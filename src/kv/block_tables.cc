#include "kv/block_tables.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace pagoda {
namespace {

// After a sequence that may grow, room is kept free for this many tokens, or for its own length if
// that is more. Most answers are shorter. A sequence that outgrows the room continues elsewhere,
// and a few runs are read as fast as one.
constexpr int kExpectedGrowth = 1024;  // tokens

}  // namespace

BlockTables::BlockTables(BlockPool& pool, PrefixCache* cache, CacheGroups groups)
    : pool_(pool), cache_(cache), groups_(std::move(groups)), num_copying_(pool.num_blocks()) {
  PAGODA_CHECK(cache == nullptr || (cache->groups().size() == groups_.size() &&
                                    cache->groups().block_size() == groups_.block_size()),
               "[block_tables] expected a cache of the same groups");
}

void BlockTables::open(BlockTable& table, std::string_view cache_owner,
                       std::string_view cache_salt) const {
  table.groups_.resize(groups_.size());
  if (cache_ != nullptr) table.chain_.scope = cache_->scope(cache_owner, cache_salt);
}

int BlockTables::acquire(BlockTable& table, std::span<const int> tokens, int limit) {
  return cache_ == nullptr ? 0 : cache_->acquire(table.chain_, tokens, limit, table.groups_);
}

bool BlockTables::begin_fetch(BlockTable& table, std::span<const int> tokens, int limit) {
  if (cache_ == nullptr) return false;
  table.fetch_ = cache_->begin_fetch(table.chain_, tokens, limit, table.groups_);
  return table.fetch_.has_value();
}

bool BlockTables::fetch(BlockTable& table, std::span<const int> tokens,
                        const SequenceLength& length, int& num_loads) {
  BlockTier& tier = *cache_->tier();
  PrefixFetch& fetch = *table.fetch_;
  for (; fetch.num_taken < fetch.blocks.size(); ++fetch.num_taken) {
    // If another sequence has cached the block meanwhile, that one is used.
    if (cache_->acquire_fetched(table.chain_, fetch, table.groups_)) {
      tier.pass(fetch.id);
      continue;
    }
    const BlockTier::Arrival arrival = tier.arrival(fetch.id);
    if (arrival == BlockTier::Arrival::kNever) return false;
    if (arrival == BlockTier::Arrival::kAwaited || num_loads == 0) return true;
    if (!make_room(1)) return false;
    const auto [group, index] = fetch.blocks[fetch.num_taken];
    const int block_id = *pool_.allocate(wish_of(table, group, index, length));
    tier.load(fetch.id, block_id);
    cache_->insert_fetched(table.chain_, tokens, fetch, block_id, table.groups_);
    --num_loads;
  }
  return false;
}

int BlockTables::acquire_partial_match(BlockTable& table, std::span<const int> tokens,
                                       const SequenceLength& length,
                                       std::vector<PlannedCopy>& copies) {
  if (cache_ == nullptr) return 0;
  const PrefixCache::PartialMatch match =
      cache_->find_partial_match(table.chain_, table.groups_, tokens);
  if (match.num_tokens == 0) return 0;
  std::vector<int> sources;
  for (int group = 0; group < groups_.size(); ++group)
    sources.push_back(cache_->block_of_group(match.block_id, group));
  // A tail that no sequence holds is adopted if all of it matches. Any other match is copied. If no
  // block is free for the copy, a tail that no sequence holds is adopted instead.
  const bool can_adopt = match.is_tail && pool_.num_holders(match.block_id) == 1;
  if (!can_adopt || !match.is_whole) {
    for (const int source : sources) cache_->hold(source);  // until the step is over
    if (make_room(groups_.size())) {
      add_blocks(table, length);
      for (int group = 0; group < groups_.size(); ++group) {
        add_copy({.source = sources[group],
                  .destination = table.groups_[group].ids.back(),
                  .num_tokens = match.num_tokens},
                 copies);
      }
      return match.num_tokens;
    }
    for (const int source : sources) cache_->release(source);
  }
  if (!can_adopt) return 0;
  cache_->transfer(match.block_id, table.groups_);
  return match.num_tokens;
}

int BlockTables::extend(BlockTable& table, int begin, int end, const SequenceLength& length,
                        std::vector<PlannedCopy>& copies) {
  for (GroupTable& group : table.groups_)
    group.ids.reserve(blocks_for(length.max_stored));  // all that its steps will need
  if (!copy_shared_block(table, begin, copies)) return begin;
  // Evict all that is needed at once, because consecutive blocks may become free.
  const int num_rows = blocks_for(end) - table.num_blocks();
  if (num_rows > 0) (void)make_room(num_rows * groups_.size());
  for (int i = 0; i < num_rows && pool_.num_free() >= groups_.size(); ++i)
    add_blocks(table, length);
  const std::int64_t room = std::int64_t{groups_.block_size()} * table.num_blocks();
  return static_cast<int>(std::min<std::int64_t>(end, room));
}

int BlockTables::num_missing(const BlockTable& table, int begin, int end) const {
  const int block_size = groups_.block_size();
  const int num_copies = begin % block_size == 0 ? 0 : num_shared(table, begin / block_size);
  return (blocks_for(end) - table.num_blocks()) * groups_.size() + num_copies;
}

int BlockTables::num_short(const BlockTable& table, int num_blocks, int num_new) const {
  int num_short = 0;
  for (int group = 0; group < groups_.size(); ++group) {
    const int most = groups_.most_held(group, num_blocks, num_new);
    num_short += std::max(0, most - table.groups_[group].num_held);
  }
  return num_short;
}

void BlockTables::share(const BlockTable& from, BlockTable& to) {
  to.groups_.resize(from.groups_.size());
  for (std::size_t group = 0; group < from.groups_.size(); ++group) {
    to.groups_[group].ids.reserve(from.groups_[group].ids.capacity());
    to.groups_[group] = from.groups_[group];
    for (const int block_id : to.groups_[group].ids) {
      if (block_id != kNoBlock) pool_.retain(block_id);
    }
  }
  to.chain_ = from.chain_;
}

void BlockTables::keep(BlockTable& table, std::span<const int> tokens, int num_computed,
                       bool in_flight) {
  if (cache_ == nullptr) return;
  const std::size_t num_before = replaced_.size();
  cache_->insert(table.chain_, tokens, num_computed, table.groups_, replaced_);
  if (replaced_.size() == num_before) return;
  ++table.epoch_;
  if (in_flight) return;
  for (std::size_t i = num_before; i < replaced_.size(); ++i) release(replaced_[i]);
  replaced_.resize(num_before);
}

void BlockTables::give_back(BlockTable& table, int position) {
  for (int group = 0; group < groups_.size(); ++group) {
    GroupTable& blocks = table.groups_[group];
    const int end =
        std::min(groups_.first_seen(group, position), static_cast<int>(blocks.ids.size()));
    for (; blocks.first < end; ++blocks.first) {
      if (blocks.ids[blocks.first] == kNoBlock) continue;
      release(std::exchange(blocks.ids[blocks.first], kNoBlock));
      --blocks.num_held;
    }
  }
}

void BlockTables::keep_tail(BlockTable& table, std::span<const int> tokens, int num_computed) {
  const int num_tokens = num_computed % groups_.block_size();
  if (cache_ == nullptr || num_tokens == 0) return;
  const int num_full = num_computed / groups_.block_size();
  if (table.chain_.num_cached_blocks != num_full) return;
  // Blocks after the tail hold nothing yet.
  const auto pop = [](GroupTable& group) {
    const int block_id = group.ids.back();
    group.ids.pop_back();
    --group.num_held;
    return block_id;
  };
  for (GroupTable& group : table.groups_) {
    while (static_cast<int>(group.ids.size()) > num_full + 1) release(pop(group));
  }
  if (cache_->insert_tail(table.chain_, table.groups_,
                          tokens.subspan(num_computed - num_tokens, num_tokens))) {
    for (GroupTable& group : table.groups_) pop(group);
  }
}

// Releases the last block first, because the cache evicts children before parents.
void BlockTables::release(BlockTable& table) {
  if (table.fetch_) cache_->tier()->end_fetch(table.fetch_->id);
  table.fetch_.reset();
  for (int i = table.num_blocks() - 1; i >= 0; --i) {
    for (const GroupTable& group : table.groups_) {
      if (group.ids[i] != kNoBlock) release(group.ids[i]);
    }
  }
  for (GroupTable& group : table.groups_) {
    group.ids.clear();
    group.first = group.num_held = 0;
  }
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

// Returns whether other tables or the cache hold the block. Copies that read it do not count.
bool BlockTables::is_shared(int block_id) const {
  return pool_.num_holders(block_id) - num_copying_[block_id] > 1;
}

int BlockTables::num_shared(const BlockTable& table, int index) const {
  return static_cast<int>(
      std::count_if(table.groups_.begin(), table.groups_.end(),
                    [&](const GroupTable& group) { return is_shared(group.ids[index]); }));
}

// Copies the block of position `begin` if it has tokens already and others hold it. Copies it in
// all groups, or in none and returns false if too few blocks are free.
bool BlockTables::copy_shared_block(BlockTable& table, int begin,
                                    std::vector<PlannedCopy>& copies) {
  const int num_tokens = begin % groups_.block_size();
  if (num_tokens == 0) return true;
  const int index = begin / groups_.block_size();
  const int num_copies = num_shared(table, index);
  if (num_copies == 0) return true;
  if (!make_room(num_copies)) return false;
  for (GroupTable& group : table.groups_) {
    int& block_id = group.ids[index];
    if (!is_shared(block_id)) continue;
    const int own = *pool_.allocate();
    // The copy takes over the table's hold of its source.
    add_copy({.source = block_id, .destination = own, .num_tokens = num_tokens}, copies);
    block_id = own;
  }
  ++table.epoch_;
  return true;
}

void BlockTables::add_copy(const PlannedCopy& copy, std::vector<PlannedCopy>& copies) {
  ++num_copying_[copy.source];
  copies.push_back(copy);
}

// Returns where block number `index` of a group should be.
BlockWish BlockTables::wish_of(const BlockTable& table, int group, int index,
                               const SequenceLength& length) const {
  const int num_blocks = blocks_for(length.num_tokens);
  const int most = blocks_for(length.max_stored);
  const int growth =
      std::clamp(most - num_blocks, 0, std::max(blocks_for(kExpectedGrowth), num_blocks));
  return {.after = index == 0 ? -1 : table.groups_[group].ids[index - 1],
          .num_blocks = groups_.most_held(group, num_blocks - index, /*num_new=*/1),
          .num_growth = groups_.most_held(group, growth, /*num_new=*/1)};
}

// Adds a block to each group's table. REQUIRES: a block for each group is free.
void BlockTables::add_blocks(BlockTable& table, const SequenceLength& length) {
  const int index = table.num_blocks();
  for (int group = 0; group < groups_.size(); ++group) {
    GroupTable& blocks = table.groups_[group];
    blocks.ids.push_back(*pool_.allocate(wish_of(table, group, index, length)));
    ++blocks.num_held;
  }
}

// Evicts blocks from the cache until num_blocks blocks are free. False: there are fewer.
bool BlockTables::make_room(int num_blocks) {
  while (pool_.num_free() < num_blocks) {
    if (cache_ == nullptr || !cache_->evict()) return false;
  }
  return true;
}

void BlockTables::release(int block_id) {
  if (cache_ != nullptr) {
    cache_->release(block_id);
  } else {
    pool_.release(block_id);
  }
}

}  // namespace pagoda
