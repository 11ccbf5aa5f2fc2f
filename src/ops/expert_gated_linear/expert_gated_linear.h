// expert_gated_linear: the first half of a mixture's MLP: for each row, the products of its expert's
// gate and up, and glu of both.
#pragma once

#include "ops/expert_linear/expert_linear.h"
#include "ops/glu/glu.h"

namespace pagoda {

struct ExpertGatedLinearArgs {
  Tensor bias;  // [experts, 2 * dim] float32, or undefined
  GluArgs glu = {};
};

// Computes out[i] = gated_linear(x[routing.tokens[i]], weight of the row's expert), bit for bit.
//   x        [tokens, cols]
//   weight   2 * dim x cols for each expert: gate's rows, then up's
//   routing  of num_chosen experts for each token
//   out      [tokens * num_chosen, dim], x's dtype, rows as the routing sorts them
// The weights of an expert that no row has chosen are not read.
Tensor expert_gated_linear(Exec& exec, const Tensor& x, const ExpertWeight& weight,
                           const Routing& routing, const ExpertGatedLinearArgs& args);

PAGODA_DECLARE_BODIES(Tensor expert_gated_linear(Exec& exec, const Tensor& x,
                                                 const ExpertWeight& weight, const Routing& routing,
                                                 const ExpertGatedLinearArgs& args))

}  // namespace pagoda
