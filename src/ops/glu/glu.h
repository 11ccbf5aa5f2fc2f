// glu: the gated activation of MLPs (Shazeer, GLU Variants Improve Transformer, 2020,
// arXiv:2002.05202): SwiGLU of Llama, GeGLU of Gemma.
#pragma once

#include "ops/dispatch.h"
#include "ops/glu/activation.h"
#include "tensor/tensor.h"

namespace pagoda {

struct GluArgs {
  Activation activation = Activation::kSilu;
};

// Computes out[t, i] = activation(gate_up[t, i]) * gate_up[t, dim + i]
//   gate_up  [tokens, 2 * dim], contiguous: the joined product of gate and up
//   out      [tokens, dim], the same dtype
Tensor glu(Exec& exec, const Tensor& gate_up, const GluArgs& args);

PAGODA_DECLARE_BODIES(Tensor glu(Exec& exec, const Tensor& gate_up, const GluArgs& args))

}  // namespace pagoda
