// gather_rows: rows of a packed matrix, unpacked. The token embedding.
#pragma once

#include "backend/weight.h"
#include "ops/dispatch.h"

namespace pagoda {

struct GatherRowsArgs {
  float factor = 1;  // multiplies every element: Gemma's sqrt(hidden), Granite's multiplier
};

// Computes out[i, :] = factor * weight[ids[i], :]
//   weight  rows x cols
//   ids     [n] int32, each in [0, rows): the caller has checked them
//   out     [n, cols], in the backend's activation type (float32 on reference and cpu)
Tensor gather_rows(Exec& exec, const Weight& weight, const Tensor& ids, const GatherRowsArgs& args);

PAGODA_DECLARE_BODIES(Tensor gather_rows(Exec& exec, const Weight& weight, const Tensor& ids,
                                         const GatherRowsArgs& args))

}  // namespace pagoda
