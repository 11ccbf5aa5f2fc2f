#include "quant/q8_0.h"

#include <algorithm>
#include <cmath>

#include "quant/block_loop.h"

namespace pagoda {

void dequantize_q8_0(std::span<const std::byte> blocks, float* values) {
  for_each_block<BlockQ8_0>(blocks, values, [](const BlockQ8_0& block, float* out) {
    const float scale = to_float(block.scale);
    for (int i = 0; i < BlockQ8_0::kValues; ++i) out[i] = scale * static_cast<float>(block.q[i]);
  });
}

void quantize_q8_0(std::span<const float> values, std::byte* blocks) {
  encode_blocks<BlockQ8_0>(values, blocks, [](std::span<const float, BlockQ8_0::kValues> x) {
    float largest = 0;
    for (const float value : x) largest = std::max(largest, std::fabs(value));
    const float scale = largest / 127;
    const float inverse = reciprocal_or_zero(scale);
    BlockQ8_0 block{.scale = to_f16(scale), .q = {}};
    for (int i = 0; i < BlockQ8_0::kValues; ++i) {
      block.q[i] = static_cast<std::int8_t>(std::round(x[i] * inverse));
    }
    return block;
  });
}

}  // namespace pagoda
