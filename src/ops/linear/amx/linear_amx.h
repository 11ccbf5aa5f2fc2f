// The products on AMX: 16 rows of x at a time with its tiles, fewer rows with AVX-512 instructions.
// Both have the same arithmetic (amx/group_numbers-inl.h).
#pragma once

#include "ops/linear/linear_kernels.h"

namespace pagoda::cpu::amx {

void multiply_few(const PanelProduct& product, std::int64_t begin, std::int64_t end);
// Multiplies tiles of 16 rows, which store x in planes (avx512/tile-inl.h).
void multiply_many(const PanelProduct& product, std::int64_t begin, std::int64_t end);

}  // namespace pagoda::cpu::amx
