#include "quant/q4_1.h"

#include "quant/block_loop.h"

namespace pagoda {

void dequantize_q4_1(std::span<const std::byte> blocks, float* values) {
  for_each_block<BlockQ4_1>(blocks, values, [](const BlockQ4_1& block, float* out) {
    constexpr int kHalf = BlockQ4_1::kValues / 2;
    const float scale = to_float(block.scale);
    const float minimum = to_float(block.minimum);
    for (int i = 0; i < kHalf; ++i) {
      out[i] = scale * static_cast<float>(block.nibbles[i] & 15) + minimum;
      out[i + kHalf] = scale * static_cast<float>(block.nibbles[i] >> 4) + minimum;
    }
  });
}

}  // namespace pagoda
