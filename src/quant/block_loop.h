// The loop that every block codec shares: bytes as they lie in a file, a block after the other.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace pagoda {

// Calls decode(block, values) for each Block in `bytes` (of any alignment); `values` moves on by
// Block::kValues.
template <typename Block, typename Decode>
void for_each_block(std::span<const std::byte> bytes, float* values, Decode decode) {
  const std::size_t num_blocks = bytes.size() / sizeof(Block);
  for (std::size_t b = 0; b < num_blocks; ++b, values += Block::kValues) {
    Block block;
    std::memcpy(&block, bytes.data() + b * sizeof(Block), sizeof(Block));
    decode(block, values);
  }
}

}  // namespace pagoda
