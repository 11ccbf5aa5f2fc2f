// BlockTables: which blocks hold the tokens of which sequence. It takes blocks as tokens come,
// finds those that the prefix cache has, and shares them between the samples of a request. It keeps
// them for later requests, and gives them back. (Block tables: Kwon et al., "PagedAttention", SOSP
// 2023, arXiv:2309.06180.)
//
//   open() -> acquire(), acquire_partial_match() -> extend() -> keep(), give_back() -> extend() ...
//                                                 |                                    |
//                               share() to a sample of the same prompt       keep_tail(), release()
//
// A sequence has a table in each cache group (kv/cache_groups.h), all of them as long. Where other
// sequences or the cache have a block below, they have it in each group alike.
//
// A block is written by one holder: extend() copies one that others hold too before the sequence
// writes to it. Such copies are the step's, which runs them before its layers; their sources, and
// blocks that the step may still read, are held until end_step().
//
// Nothing in it is a function of anything but the calls. Errors: too few blocks are an answer; a
// table that is not empty where it must be is our own mistake and ends the process.
// Thread-compatible: it belongs to the engine thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kv/block_pool.h"
#include "kv/cache_groups.h"
#include "kv/prefix_cache.h"

namespace pagoda {

// The blocks of one sequence, which BlockTables alone changes.
class BlockTable {
 public:
  // Returns the blocks that hold positions 0, block_size, 2 * block_size, ... in a group; kNoBlock
  // for those that have been given back, and those that are still to be fetched.
  std::span<const int> ids(int group = 0) const {
    return groups_.empty() ? std::span<const int>() : std::span<const int>(groups_[group].ids);
  }
  // Returns how many of the group's first blocks have been given back.
  int first(int group) const { return groups_[group].first; }
  int num_groups() const { return static_cast<int>(groups_.size()); }
  int num_blocks() const { return static_cast<int>(ids().size()); }
  // Changes whenever the tables do more than grow and give back their first blocks.
  std::uint64_t epoch() const { return epoch_; }

 private:
  friend class BlockTables;

  std::vector<GroupTable> groups_;
  std::uint64_t epoch_ = 0;
  PrefixChain chain_;                 // empty where there is no prefix cache
  std::optional<PrefixFetch> fetch_;  // of blocks that it lacks
};

// The first tokens of a block, which a step copies before its layers. In one step no block is written
// twice, or both read and written.
struct PlannedCopy {
  int source = 0;       // block id
  int destination = 0;  // block id
  int num_tokens = 0;
};

// How long a sequence is, and may become.
struct SequenceLength {
  int num_tokens = 0;  // that are known
  int max_stored = 0;  // tokens whose keys and values it may come to hold
};

class BlockTables {
 public:
  // REQUIRES: `pool` outlives this, which takes blocks from it and gives all of them back; so does
  // `cache`, a cache of the pool's blocks, or null: nothing is kept, nothing hashed.
  BlockTables(BlockPool& pool, PrefixCache* cache, CacheGroups groups);

  const CacheGroups& groups() const { return groups_; }
  // Returns how many blocks so many tokens fill, in each group.
  int blocks_for(int num_tokens) const { return groups_.blocks_for(num_tokens); }
  int num_blocks() const { return pool_.num_blocks(); }
  // Returns the number of blocks that a sequence could have: free ones, and ones that only the
  // cache holds.
  int num_free() const {
    return pool_.num_free() + (cache_ == nullptr ? 0 : cache_->num_evictable());
  }
  bool has_cache() const { return cache_ != nullptr; }

  // Opens a new table. Only tables of one owner and one salt share cached blocks. `table` is new.
  void open(BlockTable& table, std::string_view cache_owner, std::string_view cache_salt) const;
  // Fills an empty table with the cached full blocks of a prefix of tokens[0, limit); returns how
  // many tokens they hold.
  int acquire(BlockTable& table, std::span<const int> tokens, int limit);
  // Begins to fetch the full blocks of a longer prefix of tokens[0, limit) from the cache's tier;
  // false: it has none.
  bool begin_fetch(BlockTable& table, std::span<const int> tokens, int limit);
  // Puts blocks that have come into fresh ones, which the cache and the table have from now on, and
  // takes them from num_loads. False: no more come, or there is no room for them.
  bool fetch(BlockTable& table, std::span<const int> tokens, const SequenceLength& length,
             int& num_loads);
  // Returns how many blocks fetch() may load between two steps.
  int num_loads_per_step() const { return cache_->tier()->num_loads_per_step(); }
  // Adds a block that begins with the longest cached prefix of `tokens`, those behind the full
  // blocks of the table; returns how many of them it holds. The block is a copy that is added to
  // `copies`, or an adopted tail that no sequence holds. 0: nothing is cached, or no block is free.
  int acquire_partial_match(BlockTable& table, std::span<const int> tokens,
                            const SequenceLength& length, std::vector<PlannedCopy>& copies);
  // Makes room for the tokens [begin, end), which the sequence writes next; returns the end of
  // those that there is room for, `begin` where there is none. A block with room left that others
  // hold is copied, which is added to `copies`.
  int extend(BlockTable& table, int begin, int end, const SequenceLength& length,
             std::vector<PlannedCopy>& copies);
  // Returns how many blocks extend() would take.
  int num_missing(const BlockTable& table, int begin, int end) const;
  // Returns how many blocks a sequence lacks in order to grow to `num_blocks` in each group. Of a
  // group with a window only those count that it holds at most at a time. It computes up to num_new
  // tokens at a time.
  int num_short(const BlockTable& table, int num_blocks, int num_new) const;
  // Makes `to`, of another sample of the same prompt, hold the blocks of `from` as well.
  void share(const BlockTable& from, BlockTable& to);
  // Gives the cache the full blocks of tokens[0, num_computed). Where it has the same ones under
  // other ids, the table takes these; the sequence's own are held until the step is over if
  // `in_flight`, because that step reads them.
  void keep(BlockTable& table, std::span<const int> tokens, int num_computed, bool in_flight);
  // Gives back the blocks that no query at `position` or behind it sees. A step in flight may still
  // have them in its tables, but does not read them.
  void give_back(BlockTable& table, int position);
  // Gives the cache the block that tokens[0, num_computed) end within, for good: the sequence does
  // not write to the table after it.
  void keep_tail(BlockTable& table, std::span<const int> tokens, int num_computed);
  // Gives all blocks back, and ends a fetch that is under way.
  void release(BlockTable& table);
  // Releases the blocks that were held only for the step with these copies, once it is over, and
  // clears the copies.
  void end_step(std::vector<PlannedCopy>& copies);

 private:
  bool is_shared(int block_id) const;
  int num_shared(const BlockTable& table, int index) const;
  bool copy_shared_block(BlockTable& table, int begin, std::vector<PlannedCopy>& copies);
  void add_copy(const PlannedCopy& copy, std::vector<PlannedCopy>& copies);
  BlockWish wish_of(const BlockTable& table, int group, int index,
                    const SequenceLength& length) const;
  void add_blocks(BlockTable& table, const SequenceLength& length);
  bool make_room(int num_blocks);
  void release(int block_id);

  BlockPool& pool_;
  PrefixCache* cache_;  // or null
  CacheGroups groups_;
  std::vector<int> num_copying_;  // [num_blocks]; copies of steps in flight that read it
  std::vector<int> replaced_;     // by cached ones; held until the step is over
};

}  // namespace pagoda
