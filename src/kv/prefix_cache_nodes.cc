// The nodes of the prefix cache: their tree, their holders, and the order of eviction.
#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"
#include "kv/prefix_cache.h"

namespace pagoda {

std::span<const int> PrefixCache::tokens_of(int block_id) const {
  return std::span(tokens_).subspan(static_cast<std::size_t>(block_id) * block_size_,
                                    nodes_[block_id].num_tokens);
}

// Removes a block, or all blocks of a tail, from the cache, and releases the cache's holds.
void PrefixCache::forget(int block_id) {
  if (nodes_[block_id].is_evictable) set_evictable(block_id, false);
  std::vector<int> beside;
  for (int id = nodes_[block_id].beside; id != kNone; id = nodes_[id].beside) beside.push_back(id);
  unlink(block_id);
  beside.push_back(block_id);
  for (const int id : beside) pool_.release(id);
  counters_.num_evicted_blocks += beside.size();
}

void PrefixCache::hold(int block_id) {
  if (nodes_[block_id].is_evictable) set_evictable(block_id, false);
  pool_.retain(block_id);
}

// Removes a holder. A tail's blocks in other groups become evictable with its block in the first
// group.
void PrefixCache::release(int block_id) {
  pool_.release(block_id);
  if (is_cached(block_id) && !is_beside_a_tail(nodes_[block_id]) &&
      pool_.num_holders(block_id) == 1) {
    set_evictable(block_id, true);
  }
}

bool PrefixCache::evict() {
  const int block_id = oldest_;
  if (block_id == kNone) return false;
  const Node& node = nodes_[block_id];
  PAGODA_CHECK(!is_evicted_in_order() || (node.first_child == kNone && node.num_tails == 0),
               fmt::format("[prefix_cache] block {} is evicted before its children", block_id));
  if (tier_ != nullptr && is_full(block_id))
    tier_->store(block_id, stored_digest(node.digest, node.group), tokens_of(block_id));
  forget(block_id);
  return true;
}

// Frees the oldest blocks first, so children before parents. A parent behind a window is freed with
// its tails.
void PrefixCache::clear(std::string_view owner) {
  const Sha256Digest wanted = scope(owner, "").owner;
  std::vector<int> found;
  for (int id = oldest_; id != kNone; id = nodes_[id].newer) {
    if (nodes_[id].owner == wanted) found.push_back(id);
  }
  for (const int id : found) {
    if (nodes_[id].is_evictable) forget(id);
  }
  if (events_ != nullptr) events_->end_clearing();
}

// Stores the oldest blocks first, so that parents are newer than their children in the tier, too.
int PrefixCache::store_all() {
  int num_stored = 0;
  for (int id = oldest_; tier_ != nullptr && id != kNone; id = nodes_[id].newer) {
    if (!is_full(id)) continue;
    if (!tier_->wait_for_room()) break;
    tier_->store(id, stored_digest(nodes_[id].digest, nodes_[id].group), tokens_of(id));
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

// Links a block into the tree. parent: kNone if it has been evicted, or for groups after the first,
// which are not in the tree.
void PrefixCache::link(int block_id, const PrefixChain& chain, int group, int parent,
                       std::span<const int> tokens) {
  std::copy(tokens.begin(), tokens.end(),
            tokens_.begin() + static_cast<std::ptrdiff_t>(block_id) * block_size_);
  Node& node = nodes_[block_id];
  node.owner = chain.scope.owner;
  node.group = group;
  node.num_tokens = static_cast<int>(tokens.size());
  if (group > 0 || parent == kNone) return;
  Node& above = nodes_[parent];
  node.parent = parent;
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
  if (!is_tail(node)) {
    unlink_children(node);
    blocks_[node.group].erase(node.digest);
    if (events_ != nullptr && node.group == 0) events_->add_removed(node.digest);
    if (node.next != kNone) nodes_[node.next].previous = node.previous;
    if (node.previous != kNone) {
      nodes_[node.previous].next = node.next;
    } else if (parent != kNone) {
      nodes_[parent].first_child = node.next;
    }
  } else {
    Node& above = nodes_[parent];
    const auto tails = std::span(above.tails).first(above.num_tails--);
    const auto place = std::find(tails.begin(), tails.end(), block_id);
    std::move(place + 1, tails.end(), place);
    for (int id = node.beside; id != kNone;) {
      const int next = nodes_[id].beside;
      nodes_[id] = {};
      id = next;
    }
  }
  node = {};
  if (parent < pool_.num_blocks()) return;
  Node& scope = nodes_[parent];
  if (scope.first_child == kNone && scope.num_tails == 0) {
    scopes_.erase(scope.digest);
    free_scope_ids_.push_back(parent);
  }
}

// Unlinks the children of a node that is being removed: they stay without a parent. Removes its
// tails, because no prompt can find them any more.
void PrefixCache::unlink_children(Node& node) {
  while (node.num_tails > 0) forget(node.tails[0]);
  for (int child = node.first_child; child != kNone;) {
    Node& orphan = nodes_[child];
    child = orphan.next;
    orphan.parent = orphan.previous = orphan.next = kNone;
  }
  node.first_child = kNone;
}

void PrefixCache::set_evictable(int block_id, bool evictable) {
  Node& node = nodes_[block_id];
  node.is_evictable = evictable;
  const int num_blocks = is_tail(node) ? groups_.size() : 1;
  num_evictable_ += evictable ? num_blocks : -num_blocks;
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
