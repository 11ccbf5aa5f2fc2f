// Declarations that gated_linear's target-specific code and the code around it share.
#pragma once

#include <cstdint>

namespace pagoda::cpu {

// Rows of products, each `width` products of gate and then of up, and the `count` columns of out
// that are computed from them.
struct GatedColumns {
  const float* products;  // [num_rows, 2 * width]
  std::int64_t width;
  std::int64_t num_rows;
  std::int64_t count;
  float* out;
  std::int64_t out_stride;
};

}  // namespace pagoda::cpu
