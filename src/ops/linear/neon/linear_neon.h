// The parts of the NEON product that not every AArch64 processor can run.
#pragma once

#include "ops/linear/linear_kernels.h"

namespace pagoda::cpu {

// Multiplies kinds of up to 8 bits with dot products of bytes, or with matrix products of bytes.
// Both take tiles of the same layout and compute the same bits. REQUIRES: arm_features() has them.
void multiply_neon_dot(const PanelProduct& product, std::int64_t begin, std::int64_t end);
void multiply_neon_matrix(const PanelProduct& product, std::int64_t begin, std::int64_t end);

// The distance between the two pairs of a quad. The order of a quad's k is that in the bytes of a
// word of a four-bit plane: [k_a, k_b, k_a + 1, k_b + 1] with pairs a and b = a + 2.
constexpr int kPairDistance = 2;
constexpr int first_pair_of(int quad) {
  return quad / kPairDistance * 2 * kPairDistance + quad % kPairDistance;
}

}  // namespace pagoda::cpu
