#include "quant/q5_k.h"

namespace pagoda {

void unpack(const BlockQ5_K& packed, SuperBlock& block) {
  block.scale = to_float(packed.scale);
  block.minimum_scale = to_float(packed.minimum_scale);
  unpack_six_bit_scales(packed.scales, block);
  for (int i = 0; i < BlockQ5_K::kValues; ++i) {
    const int low = packed.nibbles[i / 64 * 32 + i % 32] >> (4 * (i / 32 % 2)) & 15;
    const int high = packed.high_bits[i % 32] >> (i / 32) & 1;
    block.q[i] = static_cast<std::int8_t>(low | high << 4);
  }
}

void dequantize_q5_k(std::span<const std::byte> blocks, float* values) {
  dequantize_super_blocks<BlockQ5_K>(blocks, values);
}

}  // namespace pagoda
