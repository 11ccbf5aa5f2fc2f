// BlockPool: which blocks of the KV store are taken, and by how many holders. It deals in block ids
// and has no KV memory.
//
//   free --allocate()--> 1 holder --retain()--> 2 ... --release()--> 1 --release()--> free
//
// The choice of a free block changes no answer and no plan, only where a sequence's entries are.
// With BlockOrder::kConsecutive a sequence gets the block after its last one if that is free, so
// that attention reads its memory in order. A new sequence begins in the lowest free run that has
// room for it. The sequence before the run may grow, and the blocks for that growth stay free. Low
// ids are preferred because blocks that were never used take no memory. If no run has room, the new
// sequence begins at the start of the longest run. It begins in the middle of that run if the
// sequence before may grow. With kLowest a sequence always gets the lowest free block.
//
// Every call is O(1), except allocate() when it searches for a run: it looks at no more than
// kMaxRuns runs and scans one bit per block. No call allocates memory.
//
// Errors: a full pool is a normal result (nullopt). An id out of range or a block freed twice is a
// bug and ends the process. Thread-compatible: it belongs to the engine thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace pagoda {

enum class BlockOrder : std::uint8_t { kLowest, kConsecutive };

// The wanted place of a new block.
struct BlockWish {
  int after = -1;      // the sequence's last block; -1: it has none
  int num_blocks = 1;  // blocks that the sequence is known to need, this one included
  int num_growth = 0;  // further blocks that it is likely to need
};

class BlockPool {
 public:
  static constexpr int kMaxRuns = 256;

  explicit BlockPool(int num_blocks, BlockOrder order = BlockOrder::kConsecutive);

  // Allocates a free block with one holder; nullopt if none is free.
  std::optional<int> allocate(const BlockWish& wish = {});
  void retain(int block_id);   // adds a holder to a block that has one
  void release(int block_id);  // removes a holder; a block without holders is free
  // Records that the sequence with this last block gets no more blocks, so none are reserved after
  // it. release() does the same.
  void end_growth(int block_id) { growth_[block_id] = 0; }

  int num_blocks() const { return static_cast<int>(num_holders_.size()); }
  int num_free() const { return num_free_; }
  // Returns the id from which on no block has ever been handed out.
  int num_ever_held() const { return num_ever_held_; }
  int num_holders(int block_id) const;  // 0: free

 private:
  struct Run {
    int begin = 0;
    int end = 0;
    int size() const { return end - begin; }
  };

  int find(bool free, int from) const;
  int growth_before(const Run& run) const;
  int place_new_run(const BlockWish& wish) const;
  void set_free(int block_id, bool free);

  BlockOrder order_;
  std::vector<int> num_holders_;  // [num_blocks]
  // [num_blocks]: how many blocks more the sequence with this last block may need.
  std::vector<int> growth_;
  std::vector<std::uint64_t> free_words_;  // one bit per block
  int num_free_ = 0;
  int num_ever_held_ = 0;
  int lowest_free_ = 0;  // no block below it is free
};

}  // namespace pagoda
