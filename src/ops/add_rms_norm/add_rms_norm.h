// add_rms_norm: the residual sum and the norm that follows it, in one pass over the row.
#pragma once

#include "ops/dispatch.h"
#include "ops/rms_norm/rms_norm.h"
#include "tensor/tensor.h"

namespace pagoda {

struct AddRmsNormArgs {
  float eps = 1e-6f;
  Tensor delta_norm;       // [dim] float32: weight of an RMS norm of delta; undefined: no norm
  float delta_factor = 1;  // multiplies delta, after its norm
  float sum_factor = 1;
};

struct AddRmsNormResult {
  Tensor sum;     // [tokens, dim]
  Tensor normed;  // [tokens, dim]
};

// Computes sum = sum_factor * (x + delta_factor * rms_norm(delta, delta_norm)) and normed =
// rms_norm(sum, weight). Saves a read of the residual stream and a launch for each norm.
//   x, delta  [tokens, dim]
//   weight    [dim] float32, or undefined: normed is sum
AddRmsNormResult add_rms_norm(Exec& exec, const Tensor& x, const Tensor& delta,
                              const Tensor& weight, const AddRmsNormArgs& args);

PAGODA_DECLARE_BODIES(AddRmsNormResult add_rms_norm(Exec& exec, const Tensor& x,
                                                    const Tensor& delta, const Tensor& weight,
                                                    const AddRmsNormArgs& args))

}  // namespace pagoda
