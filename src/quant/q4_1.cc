#include "quant/q4_1.h"

#include <cstring>

namespace pagoda {

void dequantize_q4_1(std::span<const std::byte> blocks, float* values) {
  constexpr int kHalf = BlockQ4_1::kValues / 2;
  const std::size_t num_blocks = blocks.size() / sizeof(BlockQ4_1);
  for (std::size_t b = 0; b < num_blocks; ++b, values += BlockQ4_1::kValues) {
    BlockQ4_1 block;
    std::memcpy(&block, blocks.data() + b * sizeof(block), sizeof(block));
    const float scale = to_float(block.scale);
    const float minimum = to_float(block.minimum);
    for (int i = 0; i < kHalf; ++i) {
      values[i] = scale * static_cast<float>(block.nibbles[i] & 15) + minimum;
      values[i + kHalf] = scale * static_cast<float>(block.nibbles[i] >> 4) + minimum;
    }
  }
}

}  // namespace pagoda
