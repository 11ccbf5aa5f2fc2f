// linear: a matrix product with a packed weight.
#pragma once

#include "backend/weight.h"
#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// out[t, j] = sum over k of x[t, k] * weight[j, k]  (+ bias[j])
//   x       [tokens, cols]; the last extent contiguous
//   weight  rows x cols
//   bias    [rows] float32, or undefined
//   out     [tokens, rows]; x's dtype, or float32 where out_float32 is set (logits)
// Each output element is accumulated over k in one fixed order, for one row and for a thousand.
struct LinearArgs {
  Tensor bias;
  bool out_float32 = false;
};
Tensor linear(Exec& exec, const Tensor& x, const Weight& weight, const LinearArgs& args);

// Checks the arguments of a product; `op` is the op's name in messages.
void check_product(std::string_view op, const Tensor& x, const Weight& weight, const Tensor& bias);
// Returns the height of the tiles that a product of many rows is divided into on this backend. A
// last tile that is not full costs as much as a full one. 1 on backends other than cpu.
int row_tile(const Exec& exec);
// Chooses how products of few rows prefetch the weights that the Exec has so far. It measures once
// on each machine, some ms per format, and keeps the choice in the user's cache folder. Does
// nothing on processors other than x86. REQUIRES: no step is running meanwhile.
void choose_prefetch(Exec& exec);
// Describes the product for a profile.
OpCall product_call(std::string_view op, const Tensor& x, const Weight& weight);

namespace cpu {
int row_tile(const Exec& exec);
void choose_prefetch(Exec& exec);
}  // namespace cpu

PAGODA_DECLARE_BODIES(Tensor linear(Exec& exec, const Tensor& x, const Weight& weight,
                                    const LinearArgs& args))

}  // namespace pagoda
