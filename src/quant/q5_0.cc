#include "quant/q5_0.h"

#include <algorithm>

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

void quantize_q5_0(std::span<const float> values, std::byte* blocks) {
  encode_blocks<BlockQ5_0>(values, blocks, [](std::span<const float, BlockQ5_0::kValues> x) {
    constexpr int kHalf = BlockQ5_0::kValues / 2;
    const float scale = extreme_of(x) / -16;
    const float inverse = reciprocal_or_zero(scale);
    BlockQ5_0 block{.scale = to_f16(scale), .high_bits = {}, .nibbles = {}};
    for (int i = 0; i < BlockQ5_0::kValues; ++i) {
      const int q = std::min(static_cast<int>(x[i] * inverse + 16.5f), 31);
      block.nibbles[i % kHalf] |= static_cast<std::uint8_t>((q & 15) << (i < kHalf ? 0 : 4));
      block.high_bits[i / 8] |= static_cast<std::uint8_t>(q >> 4 << (i % 8));
    }
    return block;
  });
}

}  // namespace pagoda
