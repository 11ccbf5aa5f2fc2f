// glu of products that are in a core's cache, for gated_linear and expert_gated_linear.
#pragma once

#include <cstdint>

#include "ops/glu/activation.h"

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

// Computes the columns, with the vectors that the machine has.
void gate_columns(const GatedColumns& columns, const GluArgs& args);

}  // namespace pagoda::cpu
