// The products on AMX: 16 rows of x at a time by its tiles, fewer by AVX-512's instructions, in one
// arithmetic (amx/group_numbers-inl.h).
#pragma once

#include "ops/linear/linear_kernels.h"

namespace pagoda::cpu::amx {

void multiply_few(const PanelProduct& product, std::int64_t begin, std::int64_t end);
// Multiplies tiles of 16 rows, whose x lies in planes (avx512/tile-inl.h).
void multiply_many(const PanelProduct& product, std::int64_t begin, std::int64_t end);

}  // namespace pagoda::cpu::amx
