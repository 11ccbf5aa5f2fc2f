// The cpu product by AMX's tiles, 16 rows of x at a time. Its bits are those of AVX-512's products,
// which it leaves fewer rows to.
#pragma once

#include "ops/linear/linear_kernels.h"

namespace pagoda::cpu::amx {

void multiply_blocks(const PanelProduct& product, std::int64_t begin, std::int64_t end);
// Multiplies the formats that is_super names (avx512/tile-inl.h), where blocks have 32 k.
void multiply_super(const PanelProduct& product, std::int64_t begin, std::int64_t end);

}  // namespace pagoda::cpu::amx
