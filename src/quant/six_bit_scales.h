// The 12 bytes in which Q4_K and Q5_K keep eight scales s and eight minima m of 6 bits each. From
// ggml.
//
//   byte     7  6   5  4  3  2  1  0                       byte     7  6  5  4   3  2  1  0
//   j      | s[j+4] | s[j]             |     j = 0 .. 3    8 + j  | m[j+4]     | s[j+4]     |
//          | bits 4,5 |                |                          | bits 0..3  | bits 0..3  |
//   4 + j  | m[j+4] | m[j]             |
//          | bits 4,5 |                |
#pragma once

#include <cstdint>

#include "quant/super_block.h"

namespace pagoda {

inline constexpr int kSixBitScaleBytes = 12;

// Fills block.scales[0..8) and block.minima[0..8).
void unpack_six_bit_scales(const std::uint8_t packed[kSixBitScaleBytes], SuperBlock& block);

// Packs scales and minima, the inverse of unpacking. REQUIRES: they are 0 .. 63.
void pack_six_bit_scales(const SuperBlock& block, std::uint8_t packed[kSixBitScaleBytes]);

}  // namespace pagoda
