#include "quant/q5_0.h"

#include "quant/block_loop.h"

namespace pagoda {

void dequantize_q5_0(std::span<const std::byte> blocks, float* values) {
  for_each_block<BlockQ5_0>(blocks, values, [](const BlockQ5_0& block, float* out) {
    const float scale = to_float(block.scale);
    for (int i = 0; i < BlockQ5_0::kValues; ++i) {
      out[i] = scale * static_cast<float>(block.q(i) - 16);
    }
  });
}

}  // namespace pagoda
