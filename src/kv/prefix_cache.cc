#include "kv/prefix_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "kv/longest_hit.h"

namespace pagoda {
namespace {

// Returns the length of the common prefix.
int common_length(std::span<const int> a, std::span<const int> b) {
  const std::size_t length = std::min(a.size(), b.size());
  const auto [end, other] = std::mismatch(a.begin(), a.begin() + length, b.begin());
  return static_cast<int>(end - a.begin());
}

}  // namespace

PrefixCache::PrefixCache(BlockPool& pool, CacheGroups groups, std::string_view model,
                         BlockTier* tier, CacheEvents* events)
    : pool_(pool),
      tier_(tier),
      events_(events),
      groups_(std::move(groups)),
      block_size_(groups_.block_size()),
      model_(sha256(model)),
      nodes_(pool.num_blocks()),
      tokens_(static_cast<std::size_t>(pool.num_blocks()) * block_size_),
      blocks_(groups_.size()) {
  for (DigestMap& blocks : blocks_) blocks.reserve(pool.num_blocks() / groups_.size() + 1);
  if (events_ != nullptr) events_->begin(model_);
}

// Returns the tokens of the block number `index` of a sequence.
std::span<const int> PrefixCache::block_tokens(std::span<const int> tokens, int index) const {
  return tokens.subspan(static_cast<std::size_t>(index) * block_size_, block_size_);
}

void PrefixCache::extend_digests(PrefixChain& chain, std::span<const int> tokens, int num_blocks) {
  for (int i = static_cast<int>(chain.digests.size()); i < num_blocks; ++i) {
    const Sha256Digest& parent = i == 0 ? chain.scope.digest : chain.digests[i - 1];
    Sha256 hash;
    hash.update(std::as_bytes(std::span(parent)));
    hash.update(std::as_bytes(block_tokens(tokens, i)));
    chain.digests.push_back(hash.finish());
    ++counters_.num_hashed_blocks;
  }
}

int PrefixCache::find(const Sha256Digest& digest, int group) const {
  const auto found = blocks_[group].find(digest);
  return found == blocks_[group].end() ? kNone : found->second;
}

// Returns a block's digest in the tier. The tier knows no groups, so the digest also covers the
// group.
Sha256Digest PrefixCache::stored_digest(const Sha256Digest& digest, int group) const {
  if (group == 0) return digest;
  Sha256 hash;
  hash.update(std::as_bytes(std::span(digest)));
  hash.update(fmt::format("group {}", group));
  return hash.finish();
}

// Makes the tables hold the cached blocks that a query after num_blocks blocks sees, and no others.
// The entry of a block that is not cached is kNoBlock.
void PrefixCache::hold_seen(const PrefixChain& chain, int num_blocks,
                            std::vector<GroupTable>& tables) {
  for (int group = 0; group < groups_.size(); ++group) {
    GroupTable& table = tables[group];
    table.first = groups_.first_seen(group, num_blocks * block_size_);
    for (int i = 0; i < static_cast<int>(table.ids.size()); ++i) {
      if (i >= table.first || table.ids[i] == kNoBlock) continue;
      release(std::exchange(table.ids[i], kNoBlock));
      --table.num_held;
    }
    table.ids.resize(num_blocks, kNoBlock);
    for (int i = table.first; i < num_blocks; ++i) {
      if (table.ids[i] != kNoBlock) continue;
      table.ids[i] = find(chain.digests[i], group);
      if (table.ids[i] == kNoBlock) continue;
      hold(table.ids[i]);
      ++table.num_held;
    }
  }
}

int PrefixCache::acquire(PrefixChain& chain, std::span<const int> tokens, int limit,
                         std::vector<GroupTable>& tables) {
  PAGODA_CHECK(tables.front().ids.empty(),
               "[prefix_cache] a table that has blocks acquires others");
  chain.num_cached_blocks = 0;
  const int num_blocks = limit / block_size_;
  // If children are evicted before parents, a scope without a first block has no blocks.
  if (num_blocks == 0 || (is_evicted_in_order() && !scopes_.contains(chain.scope.digest))) return 0;
  extend_digests(chain, tokens, num_blocks);
  chain.num_cached_blocks = longest_hit(groups_, num_blocks, [&](int group, int index) {
    return find(chain.digests[index], group) != kNone;
  });
  hold_seen(chain, chain.num_cached_blocks, tables);
  return chain.num_cached_blocks * block_size_;
}

std::optional<PrefixFetch> PrefixCache::begin_fetch(PrefixChain& chain, std::span<const int> tokens,
                                                    int limit, std::vector<GroupTable>& tables) {
  const int num_blocks = limit / block_size_;
  if (tier_ == nullptr || chain.num_cached_blocks >= num_blocks) return std::nullopt;
  extend_digests(chain, tokens, num_blocks);
  const int length = longest_hit(groups_, num_blocks, [&](int group, int index) {
    const Sha256Digest& digest = chain.digests[index];
    if (find(digest, group) != kNone) return true;
    const Sha256Digest stored = stored_digest(digest, group);
    return tier_->num_held({&stored, 1}) == 1;
  });
  if (length <= chain.num_cached_blocks) return std::nullopt;
  hold_seen(chain, length, tables);
  PrefixFetch fetch;
  std::vector<Sha256Digest> digests;
  std::vector<int> tokens_wanted;
  for (int index = 0; index < length; ++index) {
    for (int group = 0; group < groups_.size(); ++group) {
      if (index < tables[group].first || tables[group].ids[index] != kNoBlock) continue;
      fetch.blocks.push_back({.group = group, .index = index});
      digests.push_back(stored_digest(chain.digests[index], group));
      const std::span<const int> wanted = block_tokens(tokens, index);
      tokens_wanted.insert(tokens_wanted.end(), wanted.begin(), wanted.end());
    }
  }
  fetch.id = tier_->begin_fetch(digests, tokens_wanted);
  return fetch;
}

bool PrefixCache::acquire_fetched(const PrefixChain& chain, const PrefixFetch& fetch,
                                  std::vector<GroupTable>& tables) {
  const auto [group, index] = fetch.blocks[fetch.num_taken];
  const int block_id = find(chain.digests[index], group);
  if (block_id == kNone) return false;
  hold(block_id);
  tables[group].ids[index] = block_id;
  ++tables[group].num_held;
  return true;
}

void PrefixCache::insert_fetched(const PrefixChain& chain, std::span<const int> tokens,
                                 const PrefixFetch& fetch, int block_id,
                                 std::vector<GroupTable>& tables) {
  const PrefixFetch::Block& place = fetch.blocks[fetch.num_taken];
  tables[place.group].ids[place.index] = block_id;
  ++tables[place.group].num_held;
  const int known = insert_block(chain, tokens, place, tables);
  PAGODA_CHECK(known == kNone, "[prefix_cache] a block is fetched that is cached");
}

// Returns the node that is the parent of the chain's next block. kNone: the scope has no children,
// or the parent is behind the window.
int PrefixCache::parent_of(const PrefixChain& chain, const std::vector<GroupTable>& tables) const {
  if (chain.num_cached_blocks > 0) return tables.front().ids[chain.num_cached_blocks - 1];
  const auto found = scopes_.find(chain.scope.digest);
  return found == scopes_.end() ? kNone : found->second;
}

int PrefixCache::block_of_group(int block_id, int group) const {
  const Node& node = nodes_[block_id];
  if (group == 0) return block_id;
  if (!is_tail(node)) return find(node.digest, group);
  for (int i = 0; i < group; ++i) block_id = nodes_[block_id].beside;
  return block_id;
}

bool PrefixCache::has_all_groups(int block_id) const {
  for (int group = 1; group < groups_.size(); ++group) {
    if (block_of_group(block_id, group) == kNone) return false;
  }
  return true;
}

PrefixCache::PartialMatch PrefixCache::find_partial_match(const PrefixChain& chain,
                                                          const std::vector<GroupTable>& tables,
                                                          std::span<const int> tokens) const {
  PartialMatch best;
  const int parent = parent_of(chain, tables);
  if (parent == kNone || tokens.empty()) return best;
  const auto consider = [&](int block_id) {
    const std::span<const int> known = tokens_of(block_id);
    const int common = common_length(known, tokens);
    if (common <= best.num_tokens || !has_all_groups(block_id)) return;
    best = {.block_id = block_id,
            .num_tokens = common,
            .is_tail = is_tail(nodes_[block_id]),
            .is_whole = common == static_cast<int>(known.size())};
  };
  const Node& node = nodes_[parent];
  for (int i = 0; i < node.num_tails; ++i) consider(node.tails[i]);
  int child = node.first_child;
  for (int i = 0; i < kMaxSiblings && child != kNone; ++i, child = nodes_[child].next) {
    consider(child);
  }
  return best;
}

void PrefixCache::transfer(int block_id, std::vector<GroupTable>& tables) {
  PAGODA_CHECK(
      nodes_[block_id].is_evictable && is_tail(nodes_[block_id]),
      fmt::format("[prefix_cache] block {} is transferred, but is no free tail", block_id));
  for (int group = 0; group < groups_.size(); ++group) {
    tables[group].ids.push_back(block_of_group(block_id, group));
    ++tables[group].num_held;
  }
  set_evictable(block_id, false);
  unlink(block_id);
}

void PrefixCache::insert(PrefixChain& chain, std::span<const int> tokens, int num_computed,
                         std::vector<GroupTable>& tables, std::vector<int>& replaced) {
  const int num_blocks = num_computed / block_size_;
  if (chain.num_cached_blocks >= num_blocks) return;
  extend_digests(chain, tokens, num_blocks);
  for (int& i = chain.num_cached_blocks; i < num_blocks; ++i) {
    for (int group = 0; group < groups_.size(); ++group) {
      const int own = insert_block(chain, tokens, {.group = group, .index = i}, tables);
      if (own != kNone) replaced.push_back(own);
    }
  }
}

// Caches a block of a table. If the cache has the same block under another id, puts that one into
// the table and returns the replaced one, else kNone.
int PrefixCache::insert_block(const PrefixChain& chain, std::span<const int> tokens,
                              const PrefixFetch::Block& place, std::vector<GroupTable>& tables) {
  const auto [group, index] = place;
  int& block_id = tables[group].ids[index];
  const Sha256Digest& digest = chain.digests[index];
  const auto [known, is_new] = blocks_[group].try_emplace(digest, block_id);
  if (!is_new) {  // computed twice
    PAGODA_CHECK(known->second != block_id,
                 fmt::format("[prefix_cache] block {} is inserted twice", block_id));
    hold(known->second);
    return std::exchange(block_id, known->second);
  }
  int parent = kNone;
  if (group == 0)
    parent = index == 0 ? make_scope_node(chain.scope.digest) : tables[0].ids[index - 1];
  pool_.retain(block_id);
  nodes_[block_id].digest = digest;
  link(block_id, chain, group, parent, block_tokens(tokens, index));
  if (events_ != nullptr && group == 0) {
    events_->add_stored(digest, index == 0 ? chain.scope.digest : chain.digests[index - 1],
                        chain.scope, tokens_of(block_id));
  }
  return kNone;
}

bool PrefixCache::insert_tail(const PrefixChain& chain, const std::vector<GroupTable>& tables,
                              std::span<const int> tokens) {
  const int index = chain.num_cached_blocks;
  const int block_id = tables.front().ids[index];
  PAGODA_CHECK(
      !tokens.empty() && static_cast<int>(tokens.size()) < block_size_ && !is_cached(block_id),
      fmt::format("[prefix_cache] block {} with {} tokens is no tail", block_id, tokens.size()));
  for (const GroupTable& table : tables) {
    if (pool_.num_holders(table.ids[index]) > 1) return false;
  }
  int parent = parent_of(chain, tables);
  if (parent != kNone && begins_a_known_one(nodes_[parent], tokens)) return false;
  if (parent == kNone && index > 0) return false;  // the parent is behind the window
  if (parent == kNone) parent = make_scope_node(chain.scope.digest);
  for (int group = groups_.size() - 1, beside = kNone; group >= 0; --group) {
    const int own = tables[group].ids[index];
    link(own, chain, group, parent, tokens);
    nodes_[own].beside = std::exchange(beside, own);
    pool_.end_growth(own);
  }
  set_evictable(block_id, true);
  // Remove the tail that is a prefix of the new one, or else the oldest tail if there are too many.
  const Node& node = nodes_[parent];
  const auto others = std::span(node.tails).first(node.num_tails - 1);
  const auto is_prefix = [&](int tail) {
    return common_length(tokens_of(tail), tokens) == nodes_[tail].num_tokens;
  };
  if (const auto found = std::find_if(others.begin(), others.end(), is_prefix);
      found != others.end()) {
    forget(*found);
  } else if (node.num_tails > kMaxTails) {
    forget(node.tails[0]);
  }
  return true;
}

// Returns whether a tail or a full child of the parent begins with all of the tokens.
bool PrefixCache::begins_a_known_one(const Node& parent, std::span<const int> tokens) const {
  const auto begins_with_it = [&](int block_id) {
    return common_length(tokens_of(block_id), tokens) == static_cast<int>(tokens.size()) &&
           has_all_groups(block_id);
  };
  for (int i = 0; i < parent.num_tails; ++i) {
    if (begins_with_it(parent.tails[i])) return true;
  }
  int child = parent.first_child;
  for (int i = 0; i < kMaxSiblings && child != kNone; ++i, child = nodes_[child].next) {
    if (begins_with_it(child)) return true;
  }
  return false;
}

}  // namespace pagoda
