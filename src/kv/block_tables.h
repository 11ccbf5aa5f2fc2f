// BlockTables: which blocks hold the tokens of which sequence. It takes blocks as tokens come,
// finds those that the prefix cache has, and shares them between the samples of a request. It
// caches them for later requests, and gives them back. (Block tables: Kwon et al.,
// "PagedAttention", SOSP 2023, arXiv:2309.06180.)
//
//   open() -> acquire(), acquire_partial_match() -> extend() -> keep(), give_back() -> extend() ...
//                                                 |                                    |
//                               share() to a sample of the same prompt       keep_tail(), release()
//
// A sequence has a table in each cache group (kv/cache_groups.h), all of the same length. In this
// header a block of a sequence means one block in each group. Blocks are shared in all groups
// alike.
//
// A block that is written has one holder: if others hold it too, extend() copies it before the
// sequence writes to it. The step runs these copies before its layers. Their sources, and blocks
// that the step may still read, are held until end_step().
//
// The results depend only on the calls. Errors: too few blocks are a normal result. A table that is
// not empty where it must be is a bug and ends the process. Thread-compatible: it belongs to the
// engine thread.
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

// The blocks of one sequence, which only BlockTables changes.
class BlockTable {
 public:
  // Returns the blocks that hold positions 0, block_size, 2 * block_size, ... in a group; kNoBlock
  // for those that have been given back, and those that are not fetched yet.
  std::span<const int> ids(int group = 0) const {
    return groups_.empty() ? std::span<const int>() : std::span<const int>(groups_[group].ids);
  }
  // Returns how many of the group's first blocks have been given back.
  int first(int group) const { return groups_[group].first; }
  int num_groups() const { return static_cast<int>(groups_.size()); }
  int num_blocks() const { return static_cast<int>(ids().size()); }
  // Returns a number that changes whenever the tables change other than by growing or giving back
  // their first blocks.
  std::uint64_t epoch() const { return epoch_; }

 private:
  friend class BlockTables;

  std::vector<GroupTable> groups_;
  std::uint64_t epoch_ = 0;
  PrefixChain chain_;                 // empty if there is no prefix cache
  std::optional<PrefixFetch> fetch_;  // of blocks that the tables lack
};

// The first tokens of a block, which a step copies before its layers. Within one step no block is
// written twice, or both read and written.
struct PlannedCopy {
  int source = 0;       // block id
  int destination = 0;  // block id
  int num_tokens = 0;
};

// How long a sequence is, and may become.
struct SequenceLength {
  int num_tokens = 0;  // known tokens
  int max_stored = 0;  // the most tokens whose keys and values it may store
};

class BlockTables {
 public:
  // REQUIRES: `pool` and `cache` outlive this, and `cache` holds blocks of `pool`. If `cache` is
  // null nothing is cached or hashed. All blocks that this takes from the pool are given back.
  BlockTables(BlockPool& pool, PrefixCache* cache, CacheGroups groups);

  const CacheGroups& groups() const { return groups_; }
  // Returns how many blocks num_tokens tokens fill, in each group.
  int blocks_for(int num_tokens) const { return groups_.blocks_for(num_tokens); }
  int num_blocks() const { return pool_.num_blocks(); }
  // Returns the number of blocks that a sequence could get: free ones, and ones that only the cache
  // holds.
  int num_free() const {
    return pool_.num_free() + (cache_ == nullptr ? 0 : cache_->num_evictable());
  }
  bool has_cache() const { return cache_ != nullptr; }

  // Opens a new table. Only tables of one owner and one salt share cached blocks. `table` is new.
  void open(BlockTable& table, std::string_view cache_owner, std::string_view cache_salt) const;
  // Fills an empty table with the cached full blocks of a prefix of tokens[0, limit); returns how
  // many tokens they hold.
  int acquire(BlockTable& table, std::span<const int> tokens, int limit);
  // Begins to fetch the full blocks of a longer prefix of tokens[0, limit) from the cache's tier.
  // False: the tier has none.
  bool begin_fetch(BlockTable& table, std::span<const int> tokens, int limit);
  // Allocates a block for each fetched block that has arrived, and adds it to the cache and the
  // table. Subtracts their number from num_loads. False: no more blocks come, or there is no room
  // for them.
  bool fetch(BlockTable& table, std::span<const int> tokens, const SequenceLength& length,
             int& num_loads);
  // Returns how many blocks fetch() may load between two steps.
  int num_loads_per_step() const { return cache_->tier()->num_loads_per_step(); }
  // Adds a block that begins with the longest cached prefix of `tokens`, the tokens after the
  // table's full blocks. Returns the length of that prefix. The block is a copy, which is added to
  // `copies`, or an adopted tail that no sequence holds. 0: nothing is cached, or no block is free.
  int acquire_partial_match(BlockTable& table, std::span<const int> tokens,
                            const SequenceLength& length, std::vector<PlannedCopy>& copies);
  // Makes room for the tokens [begin, end), which the sequence writes next. Returns the end of the
  // tokens that have room, `begin` if none has. If `begin` is within a block that others hold, that
  // block is copied, and the copy is added to `copies`.
  int extend(BlockTable& table, int begin, int end, const SequenceLength& length,
             std::vector<PlannedCopy>& copies);
  // Returns how many blocks extend() would take.
  int num_missing(const BlockTable& table, int begin, int end) const;
  // Returns how many blocks a sequence lacks to grow to `num_blocks` in each group, if it computes
  // up to num_new tokens at a time. In a group with a window only the blocks count that it holds at
  // one time.
  int num_short(const BlockTable& table, int num_blocks, int num_new) const;
  // Makes `to`, the table of another sample of the same prompt, hold the blocks of `from` as well.
  void share(const BlockTable& from, BlockTable& to);
  // Adds the full blocks of tokens[0, num_computed) to the cache. If the cache has the same blocks
  // under other ids, the table takes those. If `in_flight`, the replaced ones are held until the
  // step is over, because that step reads them.
  void keep(BlockTable& table, std::span<const int> tokens, int num_computed, bool in_flight);
  // Gives back the blocks that no query at or after `position` sees. A step in flight may still
  // have them in its tables, but does not read them.
  void give_back(BlockTable& table, int position);
  // Moves the block in which tokens[0, num_computed) end to the cache. The sequence does not write
  // to the table after that.
  void keep_tail(BlockTable& table, std::span<const int> tokens, int num_computed);
  // Gives all blocks back, and ends a fetch in progress.
  void release(BlockTable& table);
  // Releases the blocks that were held only for the step with these copies, once the step is over,
  // and clears the copies.
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
  std::vector<int> num_copying_;  // [num_blocks]: how many copies of steps in flight read the block
  std::vector<int> replaced_;     // blocks replaced by cached ones; held until the step is over
};

}  // namespace pagoda
