#include "quant/q4_k.h"

namespace pagoda {

void unpack(const BlockQ4_K& packed, SuperBlock& block) {
  block.scale = to_float(packed.scale);
  block.minimum_scale = to_float(packed.minimum_scale);
  unpack_six_bit_scales(packed.scales, block);
  for (int i = 0; i < BlockQ4_K::kValues; ++i) {
    const int shift = 4 * (i / 32 % 2);
    block.q[i] = static_cast<std::int8_t>(packed.nibbles[i / 64 * 32 + i % 32] >> shift & 15);
  }
}

void dequantize_q4_k(std::span<const std::byte> blocks, float* values) {
  dequantize_super_blocks<BlockQ4_K>(blocks, values);
}

}  // namespace pagoda
