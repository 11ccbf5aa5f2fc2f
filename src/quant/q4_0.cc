#include "quant/q4_0.h"

#include "quant/block_loop.h"

namespace pagoda {

void dequantize_q4_0(std::span<const std::byte> blocks, float* values) {
  for_each_block<BlockQ4_0>(blocks, values, [](const BlockQ4_0& block, float* out) {
    constexpr int kHalf = BlockQ4_0::kValues / 2;
    const float scale = to_float(block.scale);
    for (int i = 0; i < kHalf; ++i) {
      out[i] = scale * static_cast<float>((block.nibbles[i] & 15) - 8);
      out[i + kHalf] = scale * static_cast<float>((block.nibbles[i] >> 4) - 8);
    }
  });
}

}  // namespace pagoda
