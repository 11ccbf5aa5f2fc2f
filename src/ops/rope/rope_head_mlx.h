// Launches of the kernels that take a SIMD group a head.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "backend/mlx/mlx_op.h"

namespace pagoda::mlx {

inline constexpr int kHeadsPerGroup = 8;  // SIMD groups of a threadgroup

// Returns the template argument, which lives as long as the process. REQUIRES: head_dim is at most
// 1,024, as model configurations are held to.
inline std::string_view head_dim_argument(std::int64_t head_dim) {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (int i = 0; i <= 1024; ++i) names.push_back(std::to_string(i));
    return names;
  }();
  return all.at(static_cast<std::size_t>(head_dim));
}

// Returns the threadgroups for `num_heads` heads of each token.
inline std::array<int, 3> head_groups(std::int64_t num_tokens, std::int64_t num_heads) {
  return {num_groups_of(num_heads, kHeadsPerGroup), static_cast<int>(num_tokens), 1};
}

}  // namespace pagoda::mlx
