// CacheGroups: groups layers by how far back they look, which decides the blocks that a sequence
// has to hold for them.
//
// The layers of a group have one window and one block table. A block holds block_size positions for
// the layers of one group. Any group can use any block, so one pool serves all groups. Behind a
// window a sequence gives its blocks back. (Groups of equally many layers over one pool: vLLM's
// hybrid KV cache manager.) docs/kv_cache.md explains the whole.
//
// Immutable, so thread-safe.
#pragma once

#include <vector>

namespace pagoda {

inline constexpr int kNoBlock = -1;

// The blocks of a sequence in one group.
struct GroupTable {
  // The blocks of positions 0, block_size, 2 * block_size, ...; kNoBlock: given back, or not there
  // yet.
  std::vector<int> ids;
  int first = 0;     // blocks before it have been given back
  int num_held = 0;  // number of ids that are not kNoBlock
};

class CacheGroups {
 public:
  // Makes groups over blocks of block_size positions. windows: for each group, the number of
  // positions that a query sees, its own included; 0: all.
  explicit CacheGroups(int block_size, std::vector<int> windows = {0});

  int size() const { return static_cast<int>(windows_.size()); }
  int block_size() const { return block_size_; }
  bool sees_all(int group) const { return windows_[group] == 0; }
  // Returns how many blocks num_tokens tokens fill, in each group.
  int blocks_for(int num_tokens) const { return (num_tokens + block_size_ - 1) / block_size_; }
  // Returns the first block of a group that queries at or after `position` see.
  int first_seen(int group, int position) const {
    const int window = windows_[group];
    return window == 0 || position < window ? 0 : (position - window + 1) / block_size_;
  }
  // Returns the most blocks of a group that a sequence holds at one time. It grows to `num_blocks`
  // blocks and computes up to num_new tokens at a time.
  int most_held(int group, int num_blocks, int num_new) const;
  // Returns the most blocks of all groups together that a sequence holds at one time. It grows to
  // num_tokens tokens and computes one at a time. It needs at least these to make progress.
  int most_held(int num_tokens) const;

 private:
  int block_size_;
  std::vector<int> windows_;
};

}  // namespace pagoda
