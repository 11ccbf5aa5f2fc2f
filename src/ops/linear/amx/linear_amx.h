// The cpu product by AMX's tiles, 16 rows of x at a time. Products of integers have the bits of
// AVX-512's, which take fewer rows; weights in bfloat16 meet tiles of any height.
#pragma once

#include "ops/linear/linear_kernels.h"

namespace pagoda::cpu::amx {

void multiply_blocks(const PanelProduct& product, std::int64_t begin, std::int64_t end);
// Multiplies the formats that is_super names (avx512/tile-inl.h), where blocks have 32 k.
void multiply_super(const PanelProduct& product, std::int64_t begin, std::int64_t end);

// Weights in bfloat16: a tile of x is [units][rows][32] of the same.
std::int64_t bfloat16_tile_bytes(int tile_rows, std::int64_t cols);
void pack_bfloat16_tile(const TileSource& source, std::byte* tile);
void multiply_bfloat16(const PanelProduct& product, std::int64_t begin, std::int64_t end);

}  // namespace pagoda::cpu::amx
