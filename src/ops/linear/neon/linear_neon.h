// The parts of the NEON product that not every AArch64 has.
#pragma once

#include "ops/linear/linear_kernels.h"

namespace pagoda::cpu {

// Kinds of up to 8 bits by dot products or by matrix products of bytes, where arm_features() has
// them. Both take tiles of the same layout and leave the same bits.
void multiply_neon_dot(const PanelProduct& product, std::int64_t begin, std::int64_t end);
void multiply_neon_matrix(const PanelProduct& product, std::int64_t begin, std::int64_t end);

// The distance between the two pairs of a quad. Its k are in this order: [k_a, k_b, k_a + 1, k_b +
// 1] with pairs a and b = a + 2, as the bytes of a word of a plane of four bits hold them.
constexpr int kPairDistance = 2;
constexpr int first_pair_of(int quad) {
  return quad / kPairDistance * 2 * kPairDistance + quad % kPairDistance;
}

}  // namespace pagoda::cpu
