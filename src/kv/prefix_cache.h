// PrefixCache: which blocks hold the prefixes of prompts and answers that have been computed.
// Plain ids; no memory of its own.
//
//   scope ── [t0..t15] ─┬─ [t16..t31] ─┬─ [t32..t47]      full blocks, by digest
//                       │              ├─ (t32..t35)      partial tails, at most four a parent
//                       │              └─ (t32, u33)
//                       └─ [u16..u31]
//
// A full block's digest is SHA-256 over its parent's digest and its tokens, so that it stands for
// all tokens up to its end; the first parent is the digest of a scope (kv/prefix_scope.h). (Block
// hashes: vLLM's automatic prefix caching; a tree of prefixes: Zheng et al., "SGLang", 2024,
// arXiv:2312.07104.) What ends within a block is kept as a tail of its parent.
//
// A prefix has a block in each cache group where layers have windows. The tree is that of the first
// group; the other groups' full blocks are found by the same digests, and a tail has one of each
// group, which come and go together. A hit needs, in each group, the blocks that a query at its end
// sees and no others.
//
// The cache is one of a block's holders in the BlockPool. A cached block that has no other holder
// may be evicted: least recently used first. A sequence holds all blocks of its chain and gives
// them back last block first. So a block is never older than its children, and children go before
// parents. Behind a window it is the other way round: a parent goes, its tails with it, and its
// children stay without one.
//
// Below it there may be a tier: full blocks that are evicted go there, and what it has of a chain is
// fetched into fresh blocks.
//
// One block stands for a digest: insert() puts the cache's block into the table of a sequence that
// computed the same one itself. By batch invariance their bits are the same.
//
// Nothing in it is a function of anything but the calls: it reads no clock. Thread-compatible: it
// belongs to the engine thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/sha256.h"
#include "kv/block_pool.h"
#include "kv/block_tier.h"
#include "kv/cache_events.h"
#include "kv/cache_groups.h"
#include "kv/prefix_scope.h"

namespace pagoda {

// A sequence's way through the cache.
struct PrefixChain {
  PrefixScope scope;
  std::vector<Sha256Digest> digests;  // of its first full blocks, as many as were asked for so far
  int num_cached_blocks = 0;          // of its tables, from the first: the cache's, and held where
                                      // they are seen
};

// The blocks that a sequence fetches from the tier.
struct PrefixFetch {
  struct Block {
    int group = 0;
    int index = 0;  // in the group's table
  };
  BlockTier::FetchId id = 0;
  std::vector<Block> blocks;  // in the order in which they come
  std::size_t num_taken = 0;
};

// Counters for /metrics; they only grow.
struct PrefixCacheCounters {
  std::uint64_t num_hashed_blocks = 0;
  std::uint64_t num_evicted_blocks = 0;
};

class PrefixCache {
 public:
  static constexpr int kMaxTails = 4;
  // Full children of a parent that are looked at for a common prefix, newest first.
  static constexpr int kMaxSiblings = 64;

  // REQUIRES: `pool` outlives the cache, and so does `tier`, or null: evicted blocks are forgotten.
  // model: what else a block's bytes depend on; a tier has blocks of many. events: told of the first
  // group's full blocks; outlives the cache, or null.
  PrefixCache(BlockPool& pool, CacheGroups groups, std::string_view model,
              BlockTier* tier = nullptr, CacheEvents* events = nullptr);

  PrefixScope scope(std::string_view owner, std::string_view salt) const {
    return prefix_scope(model_, owner, salt);
  }

  // Finds the longest prefix of tokens[0, limit) of which the blocks that a query at its end
  // sees are all cached. Fills empty tables, one of each group, with these full blocks, holds them,
  // and returns how many tokens the prefix has.
  int acquire(PrefixChain& chain, std::span<const int> tokens, int limit,
              std::vector<GroupTable>& tables);

  // Begins to fetch what the tier has of a longer prefix of tokens[0, limit) than the chain's
  // cached blocks; absent: nothing. The tables hold what the cache has of it from then on.
  std::optional<PrefixFetch> begin_fetch(PrefixChain& chain, std::span<const int> tokens, int limit,
                                         std::vector<GroupTable>& tables);
  // Holds the block that the fetch takes next where it is cached by now; false: it is not.
  bool acquire_fetched(const PrefixChain& chain, const PrefixFetch& fetch,
                       std::vector<GroupTable>& tables);
  // Caches `block_id`, with the caller's hold, as the one that the fetch takes next.
  void insert_fetched(const PrefixChain& chain, std::span<const int> tokens,
                      const PrefixFetch& fetch, int block_id, std::vector<GroupTable>& tables);
  BlockTier* tier() const { return tier_; }

  // A block behind the chain's cached ones whose first tokens are tokens[0, num_tokens): the cached
  // prefix ends within it.
  struct PartialMatch {
    int block_id = kNoBlock;  // of the first group
    int num_tokens = 0;       // 0: there is none
    bool is_tail = false;     // else a full block
    bool is_whole = false;    // all tokens of the block match
  };
  // Finds the longest match that all groups have; of those as long, a tail. Nothing is held by it.
  PartialMatch find_partial_match(const PrefixChain& chain, const std::vector<GroupTable>& tables,
                                  std::span<const int> tokens) const;
  // Returns the block of a group with the same tokens as a cached one of the first; kNoBlock: the
  // group has none.
  int block_of_group(int block_id, int group) const;
  // Forgets an evictable tail, and transfers its holds to the caller: its blocks to the tables'
  // ends.
  void transfer(int block_id, std::vector<GroupTable>& tables);

  // Caches the sequence's full blocks of tokens[0, num_computed) that are not cached yet. Blocks of
  // the tables that are cached under another id are taken out for those, and added to `replaced`:
  // the caller releases them.
  void insert(PrefixChain& chain, std::span<const int> tokens, int num_computed,
              std::vector<GroupTable>& tables, std::vector<int>& replaced);
  // Caches a tail. tokens: those of the tables' last blocks, computed, fewer than a block's. True:
  // the caller's holds are the cache's now; false: the cache does not want it, a block has other
  // holders or is known.
  bool insert_tail(const PrefixChain& chain, const std::vector<GroupTable>& tables,
                   std::span<const int> tokens);

  // Adds a holder to a block, cached or not. release() takes one away: a block that only the cache
  // then holds may be evicted.
  void hold(int block_id);
  void release(int block_id);

  // Frees the least recently used block that only the cache holds, or tail; false where there is
  // none.
  bool evict();
  // Frees the owner's blocks, under whichever salt, that only the cache holds, and tells the tier of
  // none. Blocks with a holder stay cached.
  void clear(std::string_view owner);
  // Gives the tier all full blocks that only the cache holds, waiting for it; returns how many. They
  // stay cached.
  int store_all();
  int num_evictable() const { return num_evictable_; }
  bool is_cached(int block_id) const { return nodes_[block_id].num_tokens > 0; }
  bool is_full(int block_id) const { return nodes_[block_id].num_tokens == block_size_; }
  const CacheGroups& groups() const { return groups_; }
  const PrefixCacheCounters& counters() const { return counters_; }

 private:
  static constexpr int kNone = -1;
  // A node of the tree, or a block of another group. A cached block's stands at its id; a scope's
  // with children stands behind all blocks.
  struct Node {
    Sha256Digest digest = {};  // a tail has none
    Sha256Digest owner = {};   // PrefixScope::owner; a scope's node has none
    int group = 0;
    int parent = kNone;
    int beside = kNone;  // of a tail: its block of the next group
    int num_tokens = 0;  // 0: not cached
    int first_child = kNone;
    int previous = kNone, next = kNone;         // full children of one parent, newest first
    std::array<int, kMaxTails + 1> tails = {};  // oldest first; one too many while one is added
    int num_tails = 0;
    bool is_evictable = false;
    int older = kNone, newer = kNone;  // among the evictable ones
  };
  using DigestMap = std::unordered_map<Sha256Digest, int, Sha256DigestHash>;

  bool is_tail(const Node& node) const { return node.num_tokens < block_size_; }
  bool is_beside_a_tail(const Node& node) const { return node.group > 0 && is_tail(node); }
  std::span<const int> tokens_of(int block_id) const;
  std::span<const int> block_tokens(std::span<const int> tokens, int index) const;
  void extend_digests(PrefixChain& chain, std::span<const int> tokens, int num_blocks);
  int find(const Sha256Digest& digest, int group) const;
  Sha256Digest stored_digest(const Sha256Digest& digest, int group) const;
  void hold_seen(const PrefixChain& chain, int num_blocks, std::vector<GroupTable>& tables);
  bool is_evicted_in_order() const { return groups_.sees_all(0); }
  int parent_of(const PrefixChain& chain, const std::vector<GroupTable>& tables) const;
  int make_scope_node(const Sha256Digest& scope);
  int insert_block(const PrefixChain& chain, std::span<const int> tokens,
                   const PrefixFetch::Block& place, std::vector<GroupTable>& tables);
  void link(int block_id, const PrefixChain& chain, int group, int parent,
            std::span<const int> tokens);
  void unlink(int block_id);
  void unlink_children(Node& node);
  void set_evictable(int block_id, bool evictable);
  bool has_all_groups(int block_id) const;
  bool begins_a_known_one(const Node& parent, std::span<const int> tokens) const;
  void forget(int block_id);

  BlockPool& pool_;
  BlockTier* tier_;      // or null
  CacheEvents* events_;  // or null
  CacheGroups groups_;
  int block_size_;
  Sha256Digest model_;
  std::vector<Node> nodes_;          // [num_blocks], then the scopes'
  std::vector<int> tokens_;          // [num_blocks, block_size]
  std::vector<int> free_scope_ids_;  // nodes behind the blocks' that are not in use
  std::vector<DigestMap> blocks_;    // of each group, by digest
  DigestMap scopes_;                 // by digest; those with children
  int oldest_ = kNone, newest_ = kNone;
  int num_evictable_ = 0;
  PrefixCacheCounters counters_;
};

}  // namespace pagoda
