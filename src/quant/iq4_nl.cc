#include "quant/iq4_nl.h"

#include "quant/block_loop.h"

namespace pagoda {

void dequantize_iq4_nl(std::span<const std::byte> blocks, float* values) {
  for_each_block<BlockIQ4_NL>(blocks, values, [](const BlockIQ4_NL& block, float* out) {
    constexpr int kHalf = BlockIQ4_NL::kValues / 2;
    const float scale = to_float(block.scale);
    for (int i = 0; i < kHalf; ++i) {
      out[i] = scale * static_cast<float>(kIq4Levels[block.nibbles[i] & 15]);
      out[i + kHalf] = scale * static_cast<float>(kIq4Levels[block.nibbles[i] >> 4]);
    }
  });
}

}  // namespace pagoda
