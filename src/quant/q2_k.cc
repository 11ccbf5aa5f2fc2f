#include "quant/q2_k.h"

namespace pagoda {

void unpack(const BlockQ2_K& packed, SuperBlock& block) {
  block.scale = to_float(packed.scale);
  block.minimum_scale = to_float(packed.minimum_scale);
  for (int group = 0; group < BlockQ2_K::kValues / BlockQ2_K::kGroupSize; ++group) {
    block.scales[group] = static_cast<std::int8_t>(packed.scales[group] & 15);
    block.minima[group] = packed.scales[group] >> 4;
  }
  for (int i = 0; i < BlockQ2_K::kValues; ++i) {
    const int half = i / 128;
    const int shift = 2 * (i / 32 % 4);
    block.q[i] = static_cast<std::int8_t>(packed.pairs[32 * half + i % 32] >> shift & 3);
  }
}

void dequantize_q2_k(std::span<const std::byte> blocks, float* values) {
  dequantize_super_blocks<BlockQ2_K>(blocks, values);
}

}  // namespace pagoda
