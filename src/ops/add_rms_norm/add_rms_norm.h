// add_rms_norm: the residual sum and the norm that follows it, in one pass over the row.
#pragma once

#include "ops/dispatch.h"
#include "ops/rms_norm/rms_norm.h"
#include "tensor/tensor.h"

namespace pagoda {

struct AddRmsNormResult {
  Tensor sum;     // [tokens, dim]
  Tensor normed;  // [tokens, dim]
};

// Computes sum = x + delta; normed = rms_norm(sum, weight). Saves one read of the residual stream
// and one launch a norm.
//   x, delta  [tokens, dim]; weight [dim] float32
AddRmsNormResult add_rms_norm(Exec& exec, const Tensor& x, const Tensor& delta,
                              const Tensor& weight, const RmsNormArgs& args);

PAGODA_DECLARE_BODIES(AddRmsNormResult add_rms_norm(Exec& exec, const Tensor& x,
                                                    const Tensor& delta, const Tensor& weight,
                                                    const RmsNormArgs& args))

}  // namespace pagoda
