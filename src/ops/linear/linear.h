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

// Checks what a product takes; `op` names the op.
void check_product(std::string_view op, const Tensor& x, const Weight& weight, const Tensor& bias);
// Returns the height of the tiles that products divide many rows into on this backend: rows that do
// not fill the last one cost as much as if they did. 1 on backends other than cpu.
int row_tile(const Exec& exec);
// Chooses how products of few rows fetch the weights that the Exec has by now. The choice is
// measured on this machine, once, for some ms a format; its user's cache folder keeps it. Does
// nothing but on x86's processors. REQUIRES: no step is running meanwhile.
void choose_prefetch(Exec& exec);
// Describes the product to a profile.
OpCall product_call(std::string_view op, const Tensor& x, const Weight& weight);

namespace cpu {
int row_tile(const Exec& exec);
void choose_prefetch(Exec& exec);
}  // namespace cpu

PAGODA_DECLARE_BODIES(Tensor linear(Exec& exec, const Tensor& x, const Weight& weight,
                                    const LinearArgs& args))

}  // namespace pagoda
