// The parts of the NEON product that not every AArch64 has.
#pragma once

#include "ops/linear/linear_kernels.h"

namespace pagoda::cpu {

// Multiplies kinds of up to 8 bits by dot products, or by matrix products of bytes, where
// arm_features() has them. Both take tiles of the same layout and compute the same bits.
void multiply_neon_dot(const PanelProduct& product, std::int64_t begin, std::int64_t end);
void multiply_neon_matrix(const PanelProduct& product, std::int64_t begin, std::int64_t end);

// The distance between the two pairs of a quad. Its k lie as the bytes of a word of a plane of four
// bits hold them: [k_a, k_b, k_a + 1, k_b + 1] with pairs a and b = a + 2.
constexpr int kPairDistance = 2;
constexpr int first_pair_of(int quad) {
  return quad / kPairDistance * 2 * kPairDistance + quad % kPairDistance;
}

}  // namespace pagoda::cpu
