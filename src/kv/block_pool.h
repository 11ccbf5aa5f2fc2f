// BlockPool: which blocks of the KV store are taken, and by how many holders. Plain ids; no memory
// of its own.
//
//   free --allocate()--> 1 holder --retain()--> 2 ... --release()--> 1 --release()--> free
//
// Which free block is handed out changes no answer and no plan, only where a sequence lies. In
// BlockOrder::kConsecutive a sequence gets the block behind its last one if that is free, so that
// attention can read it straight through. It begins in the lowest free run that has room for it,
// behind what the sequence before may grow into: low, because blocks that no sequence has had yet
// take no memory. Where no run has room, it begins at the start of the longest, or in its middle
// behind a sequence that may grow. In kLowest it is the free block of the lowest id.
//
// Every call is O(1), but allocate() where it looks for a run: it looks at kMaxRuns of them, and at
// a bit a block. No call takes memory.
//
// Errors: a full pool is an answer (nullopt); an id out of range or a block freed twice is our own
// mistake and ends the process. Thread-compatible: it belongs to the engine thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace pagoda {

enum class BlockOrder : std::uint8_t { kLowest, kConsecutive };

// Where a block would lie best.
struct BlockWish {
  int after = -1;      // the sequence's last block; -1: it has none
  int num_blocks = 1;  // that the sequence is known to need, this one included
  int num_growth = 0;  // that it is likely to need besides
};

class BlockPool {
 public:
  static constexpr int kMaxRuns = 256;

  explicit BlockPool(int num_blocks, BlockOrder order = BlockOrder::kConsecutive);

  // Allocates a free block with one holder; nullopt where none is free.
  std::optional<int> allocate(const BlockWish& wish = {});
  void retain(int block_id);   // one holder more, of a block that has one
  void release(int block_id);  // one holder less; the last one frees the block
  // Records that the sequence whose last block this was gets no more: the blocks behind it need not
  // be kept for it. release() says so too.
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
  std::vector<int> num_holders_;           // [num_blocks]
  std::vector<int> growth_;                // [num_blocks]; blocks that the sequence whose last one
                                           // this is may come to need
  std::vector<std::uint64_t> free_words_;  // a bit a block
  int num_free_ = 0;
  int num_ever_held_ = 0;
  int lowest_free_ = 0;  // none is free below it
};

}  // namespace pagoda
