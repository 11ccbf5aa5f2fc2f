#include "quant/q8_0.h"

#include "quant/block_loop.h"

namespace pagoda {

void dequantize_q8_0(std::span<const std::byte> blocks, float* values) {
  for_each_block<BlockQ8_0>(blocks, values, [](const BlockQ8_0& block, float* out) {
    const float scale = to_float(block.scale);
    for (int i = 0; i < BlockQ8_0::kValues; ++i) out[i] = scale * static_cast<float>(block.q[i]);
  });
}

}  // namespace pagoda
