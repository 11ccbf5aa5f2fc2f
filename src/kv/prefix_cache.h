// PrefixCache: which blocks hold the prefixes of prompts and answers that have been computed. It
// deals in block ids and has no KV memory.
//
//   scope ── [t0..t15] ─┬─ [t16..t31] ─┬─ [t32..t47]      full blocks, by digest
//                       │              ├─ (t32..t35)      partial tails, at most four a parent
//                       │              └─ (t32, u33)
//                       └─ [u16..u31]
//
// A full block's digest is SHA-256 over its parent's digest and its tokens, so it identifies all
// tokens up to the block's end. The parent of a first block is the digest of a scope
// (kv/prefix_scope.h). (Block hashes: vLLM's automatic prefix caching; a tree of prefixes: Zheng et
// al., "SGLang", 2024, arXiv:2312.07104.) A block that is filled in part is kept as a tail of its
// parent.
//
// If layers have windows, a prefix has blocks in each cache group. The tree has the blocks of the
// first group. Full blocks of other groups are found by the same digests. A tail has a block in
// each group, and these are added and removed together. A hit needs, in each group, only the blocks
// that a query at its end sees.
//
// The cache is one of a block's holders in the BlockPool. A cached block that has no other holder
// may be evicted, the least recently used one first. A sequence holds all blocks of its chain and
// releases the last block first. So a block is never older than its children, and children are
// evicted before parents. Behind a window a parent is evicted first, with its tails, and its
// children stay without a parent.
//
// There may be a tier below the cache (kv/block_tier.h). Evicted full blocks are stored there, and
// the blocks of a chain are fetched from there into new blocks.
//
// A digest has one block. If a sequence has computed the same block itself, insert() replaces that
// block in its table by the cached one. By batch invariance both have the same bits.
//
// The results depend only on the calls: no clock is read. Thread-compatible: it belongs to the
// engine thread.
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

// A sequence's path through the tree.
struct PrefixChain {
  PrefixScope scope;
  std::vector<Sha256Digest> digests;  // of its first full blocks, computed as needed
  // How many first blocks of its tables are cached. Those that the next query sees are held.
  int num_cached_blocks = 0;
};

// The blocks that a sequence fetches from the tier.
struct PrefixFetch {
  struct Block {
    int group = 0;
    int index = 0;  // in the group's table
  };
  BlockTier::FetchId id = 0;
  std::vector<Block> blocks;  // in the order in which they are fetched
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
  // How many full children of a parent are compared for a common prefix, newest first.
  static constexpr int kMaxSiblings = 64;

  // REQUIRES: `pool`, `tier` and `events` outlive the cache. If `tier` is null evicted blocks are
  // dropped. model: what else a block's bytes depend on, because a tier may have blocks of several
  // models. events: gets the events of the first group's full blocks; may be null.
  PrefixCache(BlockPool& pool, CacheGroups groups, std::string_view model,
              BlockTier* tier = nullptr, CacheEvents* events = nullptr);

  PrefixScope scope(std::string_view owner, std::string_view salt) const {
    return prefix_scope(model_, owner, salt);
  }

  // Finds the longest prefix of tokens[0, limit), in full blocks, for which all blocks that a query
  // at its end sees are cached. Puts those blocks into the empty tables, one of each group, and
  // holds them. Returns how many tokens the prefix has.
  int acquire(PrefixChain& chain, std::span<const int> tokens, int limit,
              std::vector<GroupTable>& tables);

  // Begins to fetch from the tier a prefix of tokens[0, limit) that is longer than the chain's
  // cached blocks; absent: there is none. From then on the tables hold the blocks of it that the
  // cache has.
  std::optional<PrefixFetch> begin_fetch(PrefixChain& chain, std::span<const int> tokens, int limit,
                                         std::vector<GroupTable>& tables);
  // Holds the next block of the fetch if it has been cached meanwhile. False: it has not.
  bool acquire_fetched(const PrefixChain& chain, const PrefixFetch& fetch,
                       std::vector<GroupTable>& tables);
  // Caches `block_id` as the next block of the fetch. The tables take over the caller's hold.
  void insert_fetched(const PrefixChain& chain, std::span<const int> tokens,
                      const PrefixFetch& fetch, int block_id, std::vector<GroupTable>& tables);
  BlockTier* tier() const { return tier_; }

  // The cached block, after the chain's cached full blocks, in which the cached prefix ends. It
  // begins with tokens[0, num_tokens).
  struct PartialMatch {
    int block_id = kNoBlock;  // of the first group
    int num_tokens = 0;       // 0: there is none
    bool is_tail = false;     // false: a full block
    bool is_whole = false;    // all tokens of the block match
  };
  // Finds the longest match that all groups have; of equally long ones, a tail. No block is held.
  PartialMatch find_partial_match(const PrefixChain& chain, const std::vector<GroupTable>& tables,
                                  std::span<const int> tokens) const;
  // Returns the block of `group` with the same tokens as the first group's cached block `block_id`;
  // kNoBlock if there is none.
  int block_of_group(int block_id, int group) const;
  // Removes an evictable tail from the cache and appends its blocks to the tables, which take over
  // the cache's holds.
  void transfer(int block_id, std::vector<GroupTable>& tables);

  // Caches the sequence's full blocks of tokens[0, num_computed) that are not cached yet. If the
  // cache has the same block under another id, the table takes that one. The table's own block is
  // added to `replaced`, and the caller releases it.
  void insert(PrefixChain& chain, std::span<const int> tokens, int num_computed,
              std::vector<GroupTable>& tables, std::vector<int>& replaced);
  // Caches a tail. tokens: the computed ones in the tables' last blocks, fewer than a block holds.
  // True: the cache has taken over the caller's holds. False: the tail is known already, a block of
  // it has other holders, or its parent is gone.
  bool insert_tail(const PrefixChain& chain, const std::vector<GroupTable>& tables,
                   std::span<const int> tokens);

  // Adds a holder to a block, cached or not. release() removes one. Then a block that only the
  // cache holds may be evicted.
  void hold(int block_id);
  void release(int block_id);

  // Frees the least recently used block or tail that only the cache holds; false if there is none.
  bool evict();
  // Frees the owner's blocks, of any salt, that only the cache holds, without storing them in the
  // tier. Blocks with other holders stay cached.
  void clear(std::string_view owner);
  // Stores all full blocks that only the cache holds in the tier, waiting for room there. Returns
  // their number. The blocks stay cached.
  int store_all();
  int num_evictable() const { return num_evictable_; }
  bool is_cached(int block_id) const { return nodes_[block_id].num_tokens > 0; }
  bool is_full(int block_id) const { return nodes_[block_id].num_tokens == block_size_; }
  const CacheGroups& groups() const { return groups_; }
  const PrefixCacheCounters& counters() const { return counters_; }

 private:
  static constexpr int kNone = -1;
  // A node of the tree, or a block of another group. A cached block's node has the block's id as
  // its index. Nodes of scopes that have children come after those of all blocks.
  struct Node {
    Sha256Digest digest = {};  // a tail has none
    Sha256Digest owner = {};   // PrefixScope::owner; a scope's node has none
    int group = 0;
    int parent = kNone;
    int beside = kNone;  // for a tail: its block of the next group
    int num_tokens = 0;  // 0: not cached
    int first_child = kNone;
    int previous = kNone, next = kNone;  // siblings, the full children of one parent, newest first
    std::array<int, kMaxTails + 1> tails = {};  // oldest first; one more while a tail is added
    int num_tails = 0;
    bool is_evictable = false;
    int older = kNone, newer = kNone;  // neighbours among the evictable nodes
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
  std::vector<int> free_scope_ids_;  // unused nodes after those of the blocks
  std::vector<DigestMap> blocks_;    // of each group, by digest
  DigestMap scopes_;                 // scopes that have children, by digest
  int oldest_ = kNone, newest_ = kNone;
  int num_evictable_ = 0;
  PrefixCacheCounters counters_;
};

}  // namespace pagoda
