// Declarations that expert_linear's target-specific code and the code around it share.
#pragma once

#include <cstdint>

namespace pagoda::cpu {

// A token's products, which are rows of [rows, hidden], and their weights.
struct TokenRows {
  const float* products;
  std::int64_t hidden;
  std::int64_t num_chosen;
  const std::int32_t* places;  // [num_chosen]
  const float* weights;        // [num_chosen]
  const float* shared;         // [hidden], or null
  float shared_weight;
};

}  // namespace pagoda::cpu
