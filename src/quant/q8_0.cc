#include "quant/q8_0.h"

#include <cstring>

namespace pagoda {

void dequantize_q8_0(std::span<const std::byte> blocks, float* values) {
  const std::size_t num_blocks = blocks.size() / sizeof(BlockQ8_0);
  for (std::size_t b = 0; b < num_blocks; ++b, values += BlockQ8_0::kValues) {
    BlockQ8_0 block;
    std::memcpy(&block, blocks.data() + b * sizeof(block), sizeof(block));
    const float scale = to_float(block.scale);
    for (int i = 0; i < BlockQ8_0::kValues; ++i) values[i] = scale * static_cast<float>(block.q[i]);
  }
}

}  // namespace pagoda
