// select_rows: copies the rows of an activation that the caller needs. Only these are multiplied by
// the last projection.
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// Computes out[i, :] = x[rows[i], :]
//   x     [tokens, dim], contiguous
//   rows  [n] int32, each in [0, tokens): the caller has checked them
//   out   [n, dim], x's dtype
Tensor select_rows(Exec& exec, const Tensor& x, const Tensor& rows);

PAGODA_DECLARE_BODIES(Tensor select_rows(Exec& exec, const Tensor& x, const Tensor& rows))

}  // namespace pagoda
