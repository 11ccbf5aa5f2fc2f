// Launches of kernels in which each SIMD group takes a head.
#pragma once

#include <array>
#include <cstdint>

#include "backend/gpu/gpu_op.h"

namespace pagoda::gpu {

inline constexpr int kHeadsPerGroup = 8;  // SIMD groups of a threadgroup

// Returns the threadgroups for `num_heads` heads of each token.
inline std::array<int, 3> head_groups(std::int64_t num_tokens, std::int64_t num_heads) {
  return {num_groups_of(num_heads, kHeadsPerGroup), static_cast<int>(num_tokens), 1};
}

}  // namespace pagoda::gpu
