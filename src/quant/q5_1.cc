#include "quant/q5_1.h"

#include "quant/block_loop.h"

namespace pagoda {

void dequantize_q5_1(std::span<const std::byte> blocks, float* values) {
  for_each_block<BlockQ5_1>(blocks, values, [](const BlockQ5_1& block, float* out) {
    const float scale = to_float(block.scale);
    const float minimum = to_float(block.minimum);
    for (int i = 0; i < BlockQ5_1::kValues; ++i) {
      const float product = scale * static_cast<float>(block.q(i));
      out[i] = product + minimum;
    }
  });
}

}  // namespace pagoda
