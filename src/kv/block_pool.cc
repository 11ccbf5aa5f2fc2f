#include "kv/block_pool.h"

#include <fmt/format.h>

#include "core/check.h"

namespace pagoda {

BlockPool::BlockPool(int num_blocks) {
  PAGODA_CHECK(num_blocks >= 0, fmt::format("[block_pool] expected blocks, got {}", num_blocks));
  num_holders_.resize(num_blocks, 0);
  free_ids_.reserve(num_blocks);
  for (int id = num_blocks - 1; id >= 0; --id) free_ids_.push_back(id);
}

std::optional<int> BlockPool::allocate() {
  if (free_ids_.empty()) return std::nullopt;
  const int block_id = free_ids_.back();
  free_ids_.pop_back();
  num_holders_[block_id] = 1;
  return block_id;
}

void BlockPool::retain(int block_id) {
  PAGODA_CHECK(num_holders(block_id) > 0,
               fmt::format("[block_pool] block {} is retained, but nobody holds it", block_id));
  ++num_holders_[block_id];
}

void BlockPool::release(int block_id) {
  PAGODA_CHECK(num_holders(block_id) > 0,
               fmt::format("[block_pool] block {} is released, but nobody holds it", block_id));
  if (--num_holders_[block_id] == 0) free_ids_.push_back(block_id);
}

int BlockPool::num_holders(int block_id) const {
  PAGODA_CHECK(
      0 <= block_id && block_id < num_blocks(),
      fmt::format("[block_pool] expected a block of [0, {}), got {}", num_blocks(), block_id));
  return num_holders_[block_id];
}

}  // namespace pagoda
