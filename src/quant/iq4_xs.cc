#include "quant/iq4_xs.h"

#include "quant/iq4_nl.h"

namespace pagoda {

void unpack(const BlockIQ4_XS& packed, SuperBlock& block) {
  block.scale = to_float(packed.scale);
  for (int group = 0; group < BlockIQ4_XS::kValues / BlockIQ4_XS::kGroupSize; ++group) {
    const int low = packed.scales_low[group / 2] >> (4 * (group % 2)) & 15;
    const int high = packed.scales_high >> (2 * group) & 3;
    block.scales[group] = static_cast<std::int8_t>((low | high << 4) - 32);
  }
  for (int i = 0; i < BlockIQ4_XS::kValues; ++i) {
    const int shift = 4 * (i / 16 % 2);
    block.q[i] = kIq4Levels[packed.nibbles[i / 32 * 16 + i % 16] >> shift & 15];
  }
}

void dequantize_iq4_xs(std::span<const std::byte> blocks, float* values) {
  dequantize_super_blocks<BlockIQ4_XS>(blocks, values);
}

}  // namespace pagoda
