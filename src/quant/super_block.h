// SuperBlock: the numbers of one block of 256 values, a byte each, however few bits the format
// packs them in. It follows ggml's K-quants, which store a group's scale as a small integer, times
// a scale of the whole block.
//
//   x[i] = (scale * scales[g]) * q[i] - minimum_scale * minima[g]        g = i / group_size
//
// Rounded in this order: the group's scale, its product with q, the minimum, their difference;
// never a fused multiply-add. Formats without minima have zeros there, which change no bit.
//
// Backends that pack weights read it; each format's unpack() fills it.
#pragma once

#include <cstdint>

#include "quant/block_loop.h"

namespace pagoda {

struct SuperBlock {
  static constexpr int kValues = 256;
  static constexpr int kMaxGroups = 16;

  float scale = 0;
  float minimum_scale = 0;
  std::int8_t scales[kMaxGroups] = {};   // [groups]
  std::uint8_t minima[kMaxGroups] = {};  // [groups]
  std::int8_t q[kValues];
};

void decode(const SuperBlock& block, int group_size, float* values);

// Decodes blocks: dequantize_*() of every format that has an unpack().
template <typename Block>
void dequantize_super_blocks(std::span<const std::byte> bytes, float* values) {
  static_assert(Block::kValues == SuperBlock::kValues);
  for_each_block<Block>(bytes, values, [](const Block& packed, float* out) {
    SuperBlock block;
    unpack(packed, block);
    decode(block, Block::kGroupSize, out);
  });
}

}  // namespace pagoda
