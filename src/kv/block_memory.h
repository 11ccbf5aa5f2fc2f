// BlockMemory: reads and writes all bytes of a KV block on the host: those of all arrays of all
// layers, one after another.
//
// The caller ensures that no step reads or writes the block at the same time. Thread-compatible.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/status.h"
#include "kv/kv_store.h"
#include "tensor/exec.h"

namespace pagoda {

class BlockMemory {
 public:
  // Describes the memory of a store, which has to outlive the result. kUnsupported: the host cannot
  // read this backend's memory.
  static Result<BlockMemory> of(Exec& exec, const KvStore& store);

  // An array of blocks.
  struct Array {
    std::byte* first = nullptr;
    std::size_t block_bytes = 0;
  };
  explicit BlockMemory(std::vector<Array> arrays);

  std::size_t num_bytes() const { return num_bytes_; }  // of a block
  // Copies a block's bytes, [num_bytes].
  void read(int block_id, std::span<std::byte> bytes) const;
  void write(int block_id, std::span<const std::byte> bytes) const;

 private:
  std::vector<Array> arrays_;
  std::size_t num_bytes_ = 0;
};

}  // namespace pagoda
