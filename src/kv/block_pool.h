// BlockPool: which blocks of the KV store are taken, and by how many holders. Plain ids; no memory
// of its own.
//
//   free --allocate()--> 1 holder --retain()--> 2 ... --release()--> 1 --release()--> free
//
// Free blocks are handed out last in, first out: the block given back last is the one likeliest to
// be in a processor's cache. A new pool hands out 0, 1, 2, ... Every call is O(1) and takes no
// memory.
//
// Errors: a full pool is an answer (nullopt); an id out of range or a block freed twice is our own
// mistake and ends the process. Thread-compatible: it belongs to the engine thread.
#pragma once

#include <optional>
#include <vector>

namespace pagoda {

class BlockPool {
 public:
  explicit BlockPool(int num_blocks);

  std::optional<int> allocate();  // a free block with one holder; nullopt where none is free
  void retain(int block_id);      // one holder more, of a block that has one
  void release(int block_id);     // one holder less; the last one frees the block

  int num_blocks() const { return static_cast<int>(num_holders_.size()); }
  int num_free() const { return static_cast<int>(free_ids_.size()); }
  int num_holders(int block_id) const;  // 0: free

 private:
  std::vector<int> num_holders_;  // [num_blocks]
  std::vector<int> free_ids_;     // a stack
};

}  // namespace pagoda
