// glu: the gated activation of MLPs (Shazeer, GLU Variants Improve Transformer, 2020,
// arXiv:2002.05202): SwiGLU of Llama, GeGLU of Gemma, gpt-oss's SwiGLU with limits.
#pragma once

#include "ops/dispatch.h"
#include "ops/glu/activation.h"
#include "tensor/tensor.h"

namespace pagoda {

// Computes out[t, i] = activation(gate[t, i]) * up[t, i], with both changed before as
// Activation::kSwigluOai says.
//   gate, up  [tokens, dim]; the last extent contiguous, rows at any stride: for example the halves
//             of a joined product, or slices of two different products
//   out       [tokens, dim], the same dtype, contiguous
Tensor glu(Exec& exec, const Tensor& gate, const Tensor& up, const GluArgs& args);

struct GateAndUp {
  Tensor gate;
  Tensor up;
};

// Returns the halves of a joined product [tokens, 2 * dim].
inline GateAndUp halves_of(const Tensor& joined) {
  const std::int64_t dim = joined.extent(1) / 2;
  return {.gate = joined.slice(1, 0, dim), .up = joined.slice(1, dim, 2 * dim)};
}

PAGODA_DECLARE_BODIES(Tensor glu(Exec& exec, const Tensor& gate, const Tensor& up,
                                 const GluArgs& args))

}  // namespace pagoda
