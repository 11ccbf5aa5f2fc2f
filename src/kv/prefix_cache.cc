#include "kv/prefix_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"

namespace pagoda {
namespace {

// How many tokens both begin with.
int common_length(std::span<const int> a, std::span<const int> b) {
  const std::size_t length = std::min(a.size(), b.size());
  const auto [end, other] = std::mismatch(a.begin(), a.begin() + length, b.begin());
  return static_cast<int>(end - a.begin());
}

}  // namespace

PrefixCache::PrefixCache(BlockPool& pool, int block_size, std::string_view model, BlockTier* tier)
    : pool_(pool),
      tier_(tier),
      block_size_(block_size),
      model_(sha256(model)),
      nodes_(pool.num_blocks()),
      tokens_(static_cast<std::size_t>(pool.num_blocks()) * block_size) {
  PAGODA_CHECK(block_size > 0, "[prefix_cache] expected blocks of a token at least");
  blocks_.reserve(pool.num_blocks());
}

Sha256Digest PrefixCache::scope(std::string_view cache_salt) const {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(model_)));
  hash.update(cache_salt);
  return hash.finish();
}

std::span<const int> PrefixCache::tokens_of(int block_id) const {
  return std::span(tokens_).subspan(static_cast<std::size_t>(block_id) * block_size_,
                                    nodes_[block_id].num_tokens);
}

void PrefixCache::extend_digests(PrefixChain& chain, std::span<const int> tokens, int num_blocks) {
  for (int i = static_cast<int>(chain.digests.size()); i < num_blocks; ++i) {
    const Sha256Digest& parent = i == 0 ? chain.scope : chain.digests[i - 1];
    Sha256 hash;
    hash.update(std::as_bytes(std::span(parent)));
    hash.update(
        std::as_bytes(tokens.subspan(static_cast<std::size_t>(i) * block_size_, block_size_)));
    chain.digests.push_back(hash.finish());
    ++counters_.num_hashed_blocks;
  }
}

int PrefixCache::acquire(PrefixChain& chain, std::span<const int> tokens, int limit,
                         std::vector<int>& table) {
  PAGODA_CHECK(table.empty(), "[prefix_cache] a table that has blocks acquires others");
  chain.num_cached_blocks = 0;
  const int num_blocks = limit / block_size_;
  if (num_blocks > 0 && scopes_.contains(chain.scope)) {
    extend_digests(chain, tokens, num_blocks);
    while (chain.num_cached_blocks < num_blocks && acquire_next(chain, table)) continue;
  }
  return chain.num_cached_blocks * block_size_;
}

bool PrefixCache::acquire_next(PrefixChain& chain, std::vector<int>& table) {
  const auto next = static_cast<std::size_t>(chain.num_cached_blocks);
  if (next >= chain.digests.size()) return false;
  const auto found = blocks_.find(chain.digests[next]);
  if (found == blocks_.end()) return false;
  hold(found->second);
  table.push_back(found->second);
  ++chain.num_cached_blocks;
  return true;
}

std::optional<BlockTier::FetchId> PrefixCache::begin_fetch(PrefixChain& chain,
                                                           std::span<const int> tokens, int limit) {
  const int num_blocks = limit / block_size_;
  const int first = chain.num_cached_blocks;
  if (tier_ == nullptr || first >= num_blocks) return std::nullopt;
  extend_digests(chain, tokens, num_blocks);
  const auto wanted = std::span(chain.digests).first(num_blocks).subspan(first);
  const int num_held = tier_->num_held(wanted);
  if (num_held == 0) return std::nullopt;
  const auto block_size = static_cast<std::size_t>(block_size_);
  return tier_->begin_fetch(wanted.first(num_held),
                            tokens.subspan(first * block_size, num_held * block_size));
}

// The node that the chain's next block would be a child of; kNone: a scope without children.
int PrefixCache::parent_of(const PrefixChain& chain, std::span<const int> table) const {
  if (chain.num_cached_blocks > 0) return table[chain.num_cached_blocks - 1];
  const auto found = scopes_.find(chain.scope);
  return found == scopes_.end() ? kNone : found->second;
}

PrefixCache::Beginning PrefixCache::find_beginning(const PrefixChain& chain,
                                                   std::span<const int> table,
                                                   std::span<const int> tokens) const {
  Beginning best;
  const int parent = parent_of(chain, table);
  if (parent == kNone || tokens.empty()) return best;
  const auto consider = [&](int block_id) {
    const std::span<const int> known = tokens_of(block_id);
    const int common = common_length(known, tokens);
    if (common <= best.num_tokens) return;
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

void PrefixCache::transfer(int block_id) {
  PAGODA_CHECK(
      nodes_[block_id].is_evictable && is_tail(nodes_[block_id]),
      fmt::format("[prefix_cache] block {} is transferred, but is no free tail", block_id));
  set_evictable(block_id, false);
  unlink(block_id);
}

void PrefixCache::insert(PrefixChain& chain, std::span<const int> tokens, int num_computed,
                         std::vector<int>& table, std::vector<int>& replaced) {
  const int num_blocks = num_computed / block_size_;
  if (chain.num_cached_blocks >= num_blocks) return;
  extend_digests(chain, tokens, num_blocks);
  for (int& i = chain.num_cached_blocks; i < num_blocks; ++i) {
    const auto [place, is_new] = blocks_.try_emplace(chain.digests[i], table[i]);
    if (!is_new) {  // computed twice
      const int own = table[i];
      PAGODA_CHECK(place->second != own,
                   fmt::format("[prefix_cache] block {} is inserted twice", own));
      hold(place->second);
      table[i] = place->second;
      replaced.push_back(own);
      continue;
    }
    const int parent = i == 0 ? make_scope_node(chain.scope) : table[i - 1];
    pool_.retain(table[i]);
    nodes_[table[i]].digest = chain.digests[i];
    link(table[i], parent, tokens.subspan(static_cast<std::size_t>(i) * block_size_, block_size_));
  }
}

bool PrefixCache::insert_tail(const PrefixChain& chain, std::span<const int> table,
                              std::span<const int> tokens) {
  const int block_id = table[chain.num_cached_blocks];
  PAGODA_CHECK(
      !tokens.empty() && static_cast<int>(tokens.size()) < block_size_ && !is_cached(block_id),
      fmt::format("[prefix_cache] block {} with {} tokens is no tail", block_id, tokens.size()));
  if (pool_.num_holders(block_id) > 1) return false;
  int parent = parent_of(chain, table);
  if (parent != kNone && begins_a_known_one(nodes_[parent], tokens)) return false;
  if (parent == kNone) parent = make_scope_node(chain.scope);
  link(block_id, parent, tokens);
  pool_.end_growth(block_id);
  set_evictable(block_id, true);
  // Out goes what the new one goes on from, or else the oldest of too many.
  const Node& node = nodes_[parent];
  const auto others = std::span(node.tails).first(node.num_tails - 1);
  const auto is_beginning = [&](int tail) {
    return common_length(tokens_of(tail), tokens) == nodes_[tail].num_tokens;
  };
  if (const auto found = std::find_if(others.begin(), others.end(), is_beginning);
      found != others.end()) {
    forget_tail(*found);
  } else if (node.num_tails > kMaxTails) {
    forget_tail(node.tails[0]);
  }
  return true;
}

// A tail or a full child begins with all of it.
bool PrefixCache::begins_a_known_one(const Node& parent, std::span<const int> tokens) const {
  const auto begins_with_it = [&](int block_id) {
    return common_length(tokens_of(block_id), tokens) == static_cast<int>(tokens.size());
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

void PrefixCache::forget_tail(int block_id) {
  if (nodes_[block_id].is_evictable) set_evictable(block_id, false);
  unlink(block_id);
  ++counters_.num_evicted_blocks;
  pool_.release(block_id);
}

void PrefixCache::hold(int block_id) {
  if (nodes_[block_id].is_evictable) set_evictable(block_id, false);
  pool_.retain(block_id);
}

void PrefixCache::release(int block_id) {
  pool_.release(block_id);
  if (is_cached(block_id) && pool_.num_holders(block_id) == 1) set_evictable(block_id, true);
}

bool PrefixCache::evict() {
  const int block_id = oldest_;
  if (block_id == kNone) return false;
  const Node& node = nodes_[block_id];
  PAGODA_CHECK(node.first_child == kNone && node.num_tails == 0,
               fmt::format("[prefix_cache] block {} is evicted before its children", block_id));
  if (tier_ != nullptr && is_full(block_id))
    tier_->store(block_id, node.digest, tokens_of(block_id));
  set_evictable(block_id, false);
  unlink(block_id);
  ++counters_.num_evicted_blocks;
  pool_.release(block_id);
  return true;
}

// The oldest first, so that parents are the newest ones there, too.
int PrefixCache::store_all() {
  int num_stored = 0;
  for (int id = oldest_; tier_ != nullptr && id != kNone; id = nodes_[id].newer) {
    if (!is_full(id)) continue;
    if (!tier_->wait_for_room()) break;
    tier_->store(id, nodes_[id].digest, tokens_of(id));
    ++num_stored;
  }
  return num_stored;
}

int PrefixCache::make_scope_node(const Sha256Digest& scope) {
  const auto [place, is_new] = scopes_.try_emplace(scope, kNone);
  if (is_new) {
    if (free_scope_ids_.empty()) {
      free_scope_ids_.push_back(static_cast<int>(nodes_.size()));
      nodes_.emplace_back();
    }
    place->second = free_scope_ids_.back();
    free_scope_ids_.pop_back();
    nodes_[place->second].digest = scope;
  }
  return place->second;
}

void PrefixCache::link(int block_id, int parent, std::span<const int> tokens) {
  std::copy(tokens.begin(), tokens.end(),
            tokens_.begin() + static_cast<std::ptrdiff_t>(block_id) * block_size_);
  Node& node = nodes_[block_id];
  Node& above = nodes_[parent];
  node.parent = parent;
  node.num_tokens = static_cast<int>(tokens.size());
  if (is_tail(node)) {
    above.tails[above.num_tails++] = block_id;
    return;
  }
  node.next = above.first_child;
  if (node.next != kNone) nodes_[node.next].previous = block_id;
  above.first_child = block_id;
}

void PrefixCache::unlink(int block_id) {
  Node& node = nodes_[block_id];
  const int parent = node.parent;
  Node& above = nodes_[parent];
  if (is_tail(node)) {
    const auto tails = std::span(above.tails).first(above.num_tails--);
    const auto place = std::find(tails.begin(), tails.end(), block_id);
    std::move(place + 1, tails.end(), place);
  } else {
    blocks_.erase(node.digest);
    (node.previous == kNone ? above.first_child : nodes_[node.previous].next) = node.next;
    if (node.next != kNone) nodes_[node.next].previous = node.previous;
  }
  node = {};
  const bool is_scope = parent >= pool_.num_blocks();
  if (is_scope && above.first_child == kNone && above.num_tails == 0) {
    scopes_.erase(above.digest);
    free_scope_ids_.push_back(parent);
  }
}

void PrefixCache::set_evictable(int block_id, bool evictable) {
  Node& node = nodes_[block_id];
  node.is_evictable = evictable;
  num_evictable_ += evictable ? 1 : -1;
  if (evictable) {
    node.older = newest_;
    node.newer = kNone;
    (newest_ == kNone ? oldest_ : nodes_[newest_].newer) = block_id;
    newest_ = block_id;
    return;
  }
  (node.older == kNone ? oldest_ : nodes_[node.older].newer) = node.newer;
  (node.newer == kNone ? newest_ : nodes_[node.newer].older) = node.older;
}

}  // namespace pagoda
