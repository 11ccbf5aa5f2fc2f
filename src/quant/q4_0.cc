#include "quant/q4_0.h"

#include <cstring>

namespace pagoda {

void dequantize_q4_0(std::span<const std::byte> blocks, float* values) {
  constexpr int kHalf = BlockQ4_0::kValues / 2;
  const std::size_t num_blocks = blocks.size() / sizeof(BlockQ4_0);
  for (std::size_t b = 0; b < num_blocks; ++b, values += BlockQ4_0::kValues) {
    BlockQ4_0 block;
    std::memcpy(&block, blocks.data() + b * sizeof(block), sizeof(block));
    const float scale = to_float(block.scale);
    for (int i = 0; i < kHalf; ++i) {
      values[i] = scale * static_cast<float>((block.nibbles[i] & 15) - 8);
      values[i + kHalf] = scale * static_cast<float>((block.nibbles[i] >> 4) - 8);
    }
  }
}

}  // namespace pagoda
