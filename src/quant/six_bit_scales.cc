#include "quant/six_bit_scales.h"

namespace pagoda {

void unpack_six_bit_scales(const std::uint8_t packed[kSixBitScaleBytes], SuperBlock& block) {
  for (int j = 0; j < 4; ++j) {
    const int scale = packed[j];
    const int minimum = packed[j + 4];
    const int low = packed[j + 8];
    block.scales[j] = static_cast<std::int8_t>(scale & 63);
    block.minima[j] = static_cast<std::uint8_t>(minimum & 63);
    block.scales[j + 4] = static_cast<std::int8_t>((low & 15) | (scale >> 6) << 4);
    block.minima[j + 4] = static_cast<std::uint8_t>(low >> 4 | (minimum >> 6) << 4);
  }
}

void pack_six_bit_scales(const SuperBlock& block, std::uint8_t packed[kSixBitScaleBytes]) {
  for (int j = 0; j < 4; ++j) {
    const int scale = block.scales[j + 4];
    const int minimum = block.minima[j + 4];
    packed[j] = static_cast<std::uint8_t>(block.scales[j] | scale >> 4 << 6);
    packed[j + 4] = static_cast<std::uint8_t>(block.minima[j] | minimum >> 4 << 6);
    packed[j + 8] = static_cast<std::uint8_t>((scale & 15) | (minimum & 15) << 4);
  }
}

}  // namespace pagoda
