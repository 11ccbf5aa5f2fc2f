#include "quant/q6_k.h"

#include <algorithm>
#include <iterator>

namespace pagoda {

void unpack(const BlockQ6_K& packed, SuperBlock& block) {
  block.scale = to_float(packed.scale);
  std::copy(std::begin(packed.scales), std::end(packed.scales), block.scales);
  for (int i = 0; i < BlockQ6_K::kValues; ++i) {
    const int half = i / 128;
    const int low = packed.nibbles[64 * half + i % 64] >> (4 * (i / 64 % 2)) & 15;
    const int high = packed.pairs[32 * half + i % 32] >> (2 * (i / 32 % 4)) & 3;
    block.q[i] = static_cast<std::int8_t>((low | high << 4) - 32);
  }
}

void dequantize_q6_k(std::span<const std::byte> blocks, float* values) {
  dequantize_super_blocks<BlockQ6_K>(blocks, values);
}

}  // namespace pagoda
