#include "quant/mxfp4.h"

#include "quant/block_loop.h"

namespace pagoda {

void dequantize_mxfp4(std::span<const std::byte> blocks, float* values) {
  for_each_block<BlockMXFP4>(blocks, values, [](const BlockMXFP4& block, float* out) {
    constexpr int kHalf = BlockMXFP4::kValues / 2;
    const float scale = mxfp4_scale(block.exponent);
    for (int i = 0; i < kHalf; ++i) {
      out[i] = scale * static_cast<float>(kMxfp4Levels[block.nibbles[i] & 15]);
      out[i + kHalf] = scale * static_cast<float>(kMxfp4Levels[block.nibbles[i] >> 4]);
    }
  });
}

}  // namespace pagoda
