// gated_linear: the first half of a gated MLP: the products of gate and up, and swiglu of both.
#pragma once

#include "ops/linear/linear.h"
#include "ops/swiglu/swiglu.h"

namespace pagoda {

// Computes out = swiglu(linear(x, weight, {.bias = bias})), the same bits. On cpu the products
// never leave a core's cache: a prompt of 512 of SmolLM2 saves writing and reading 6 MB a layer.
//   x       [tokens, cols]
//   weight  2 * dim x cols: gate's rows, then up's
//   bias    [2 * dim] float32, or undefined
//   out     [tokens, dim], x's dtype
Tensor gated_linear(Exec& exec, const Tensor& x, const Weight& weight, const Tensor& bias);

PAGODA_DECLARE_BODIES(Tensor gated_linear(Exec& exec, const Tensor& x, const Weight& weight,
                                          const Tensor& bias))

}  // namespace pagoda
