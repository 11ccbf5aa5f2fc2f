// glu: the gated activation of MLPs (Shazeer, GLU Variants Improve Transformer, 2020,
// arXiv:2002.05202): SwiGLU of Llama, GeGLU of Gemma.
#pragma once

#include <cstdint>
#include <string_view>

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

enum class Activation : std::uint8_t {
  kSilu,      // x / (1 + exp(-x))
  kGeluTanh,  // x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
};

// Returns "silu", "gelu_tanh".
std::string_view activation_name(Activation activation);

struct GluArgs {
  Activation activation = Activation::kSilu;
};

// Computes out[t, i] = activation(gate_up[t, i]) * gate_up[t, dim + i]
//   gate_up  [tokens, 2 * dim], contiguous: the joined product of gate and up
//   out      [tokens, dim], the same dtype
Tensor glu(Exec& exec, const Tensor& gate_up, const GluArgs& args);

PAGODA_DECLARE_BODIES(Tensor glu(Exec& exec, const Tensor& gate_up, const GluArgs& args))

}  // namespace pagoda
