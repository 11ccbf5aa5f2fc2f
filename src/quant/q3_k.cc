#include "quant/q3_k.h"

namespace pagoda {

void unpack(const BlockQ3_K& packed, SuperBlock& block) {
  block.scale = to_float(packed.scale);
  for (int group = 0; group < BlockQ3_K::kValues / BlockQ3_K::kGroupSize; ++group) {
    const int low = packed.scales[group % 8] >> (4 * (group / 8)) & 15;
    const int high = packed.scales[8 + group % 4] >> (2 * (group / 4)) & 3;
    block.scales[group] = static_cast<std::int8_t>((low | high << 4) - 32);
  }
  for (int i = 0; i < BlockQ3_K::kValues; ++i) {
    const int low = packed.pairs[i / 128 * 32 + i % 32] >> (2 * (i / 32 % 4)) & 3;
    const int high = packed.high_bits[i % 32] >> (i / 32) & 1;
    block.q[i] = static_cast<std::int8_t>((low | high << 2) - 4);
  }
}

void dequantize_q3_k(std::span<const std::byte> blocks, float* values) {
  dequantize_super_blocks<BlockQ3_K>(blocks, values);
}

}  // namespace pagoda
