// expert_linear: the second half of a mixture's MLP: for each row, the product of its expert's
// weight; and for each token, the weighted sum of its rows.
#pragma once

#include <string_view>

#include "backend/weight.h"
#include "ops/dispatch.h"
#include "ops/group_by_expert/group_by_expert.h"
#include "tensor/tensor.h"

namespace pagoda {

struct ExpertLinearArgs {
  Tensor bias;  // [experts, hidden] float32, or undefined
  // The output of the expert that all tokens share, and the logit of its weight.
  Tensor shared;       // [tokens, hidden], contiguous, or undefined
  Tensor shared_gate;  // [tokens, 1], contiguous; undefined: a weight of 1
};

// Computes out[t] = w[0] * y[0] + w[1] * y[1] + ..., from left to right, and at last
// + sigmoid(shared_gate[t]) * shared[t], with
//   w[i] = weights[t, i], and y[i] = linear(x[row], weight of its expert), row = routing.places[t, i]
//   x        [rows, cols], as the routing sorts them; contiguous
//   weight   hidden x cols for each expert
//   weights  [tokens, num_chosen] float32, contiguous
//   out      [tokens, hidden], x's dtype
// So a token's sum is in the order in which its experts are listed, whatever other tokens there are.
// The weights of an expert that no row has chosen are not read.
Tensor expert_linear(Exec& exec, const Tensor& x, const ExpertWeight& weight,
                     const Routing& routing, const Tensor& weights, const ExpertLinearArgs& args);

// Returns how many rows a block of a Routing should have at most, for products of `num_tokens`
// tokens.
int expert_block_rows(const Exec& exec, std::int64_t num_tokens);

// Checks the arguments that the products of experts share; `op` is the op's name in messages.
void check_expert_product(std::string_view op, const Tensor& x, const ExpertWeight& weight,
                          const Routing& routing, const Tensor& bias);
// Describes such a product for a profile. It counts the experts' bytes that are read if the Exec has
// computed the routing, else those that may be read.
OpCall expert_product_call(std::string_view op, const Exec& exec, const Tensor& x,
                           const ExpertWeight& weight, const Routing& routing);

PAGODA_DECLARE_BODIES(Tensor expert_linear(Exec& exec, const Tensor& x, const ExpertWeight& weight,
                                           const Routing& routing, const Tensor& weights,
                                           const ExpertLinearArgs& args))
PAGODA_DECLARE_BODIES(int expert_block_rows(const Exec& exec, std::int64_t num_tokens))

}  // namespace pagoda
