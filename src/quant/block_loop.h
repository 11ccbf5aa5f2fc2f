// The loops over consecutive blocks that block codecs share.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

namespace pagoda {

// Calls decode(block, values) for each Block in `bytes`, which may be unaligned. `values` advances
// by Block::kValues for each block.
template <typename Block, typename Decode>
void for_each_block(std::span<const std::byte> bytes, float* values, Decode decode) {
  const std::size_t num_blocks = bytes.size() / sizeof(Block);
  for (std::size_t b = 0; b < num_blocks; ++b, values += Block::kValues) {
    Block block;
    std::memcpy(&block, bytes.data() + b * sizeof(Block), sizeof(Block));
    decode(block, values);
  }
}

// Encodes whole blocks: values.size() is a multiple of Block::kValues, and encode() takes one
// block's values.
template <typename Block, typename Encode>
void encode_blocks(std::span<const float> values, std::byte* bytes, Encode encode) {
  for (; values.size() >= Block::kValues; values = values.subspan(Block::kValues)) {
    const Block block = encode(values.template first<Block::kValues>());
    std::memcpy(bytes, &block, sizeof(Block));
    bytes += sizeof(Block);
  }
}

// Returns the value of the largest magnitude; the first one if there are several.
inline float extreme_of(std::span<const float> values) {
  float extreme = 0;
  for (const float value : values) {
    if (std::fabs(value) > std::fabs(extreme)) extreme = value;
  }
  return extreme;
}

// Returns 1 / x, or 0 if that is not finite: x is zero or too small.
inline float reciprocal_or_zero(float x) {
  const float reciprocal = 1.0f / x;
  return std::isfinite(reciprocal) ? reciprocal : 0.0f;
}

}  // namespace pagoda
