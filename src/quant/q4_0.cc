#include "quant/q4_0.h"

#include <algorithm>

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

void quantize_q4_0(std::span<const float> values, std::byte* blocks) {
  encode_blocks<BlockQ4_0>(values, blocks, [](std::span<const float, BlockQ4_0::kValues> x) {
    const float scale = extreme_of(x) / -8;
    const float inverse = reciprocal_or_zero(scale);
    const auto q = [&](int i) { return std::min(static_cast<int>(x[i] * inverse + 8.5f), 15); };
    BlockQ4_0 block{.scale = to_f16(scale), .nibbles = {}};
    for (int i = 0; i < BlockQ4_0::kValues / 2; ++i) {
      block.nibbles[i] = static_cast<std::uint8_t>(q(i) | q(i + BlockQ4_0::kValues / 2) << 4);
    }
    return block;
  });
}

}  // namespace pagoda
