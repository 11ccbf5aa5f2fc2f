// swiglu: the gated activation of Llama-style MLPs (Shazeer, GLU Variants Improve Transformer,
// 2020, arXiv:2002.05202).
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// Computes out[t, i] = silu(gate_up[t, i]) * gate_up[t, dim + i], silu(x) = x / (1 + exp(-x))
//   gate_up  [tokens, 2 * dim], contiguous: the joined product of gate and up
//   out      [tokens, dim], the same dtype
Tensor swiglu(Exec& exec, const Tensor& gate_up);

PAGODA_DECLARE_BODIES(Tensor swiglu(Exec& exec, const Tensor& gate_up))

}  // namespace pagoda
