// gate_heads: multiplies attention's output by softplus of a gate, for each head or for each element
// of it, as Laguna does (poolside, 2026).
#pragma once

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

// Computes out[t, i] = x[t, i] * log(1 + exp(gate[t, i / (dim / gates)]))
//   x     [tokens, dim] float32, contiguous
//   gate  [tokens, gates] float32, contiguous; dim is a multiple of gates
//   out   x's shape and dtype
Tensor gate_heads(Exec& exec, const Tensor& x, const Tensor& gate);

PAGODA_DECLARE_BODIES(Tensor gate_heads(Exec& exec, const Tensor& x, const Tensor& gate))

}  // namespace pagoda
