#include <algorithm>
#include <cmath>

#include "backend/reference/reference_weight.h"
#include "ops/expert_linear/expert_linear.h"
#include "ops/linear/linear.h"

namespace pagoda::reference {
namespace {

// Returns the product of each row and its expert's weight: [rows, hidden].
Tensor products_of_rows(Exec& exec, const Tensor& x, const ExpertWeight& weight,
                        const Routing& routing, const Tensor& bias) {
  const std::int64_t hidden = weight.rows();
  Tensor products = exec.allocate(DType::kFloat32, {x.extent(0), hidden});
  for (std::int64_t i = 0; i < routing.blocks.extent(0); ++i) {
    const auto* block = routing.blocks.data<std::int32_t>() + 3 * i;
    const int expert = block[0], first = block[1], count = block[2];
    if (count == 0) break;
    LinearArgs args;
    if (bias.defined()) args.bias = bias.slice(0, expert, expert + 1).view({hidden});
    const Tensor results = reference::linear(exec, x.slice(0, first, first + count),
                                             weight_of_expert(weight, expert), args);
    std::copy_n(results.data<float>(), count * hidden, products.data<float>() + first * hidden);
  }
  return products;
}

}  // namespace

int expert_block_rows(const Exec&, std::int64_t num_tokens) {
  return static_cast<int>(num_tokens);
}

Tensor expert_linear(Exec& exec, const Tensor& x, const ExpertWeight& weight,
                     const Routing& routing, const Tensor& weights, const ExpertLinearArgs& args) {
  const std::int64_t tokens = weights.extent(0), num_chosen = weights.extent(1);
  const std::int64_t hidden = weight.rows();
  Tensor out = exec.allocate(DType::kFloat32, {tokens, hidden});
  const Tensor products = products_of_rows(exec, x, weight, routing, args.bias);
  const auto* place = routing.places.data<std::int32_t>();
  for (std::int64_t t = 0; t < tokens; ++t) {
    double factor = 1;  // of `shared`
    if (args.shared_gate.defined()) {
      factor = 1 / (1 + std::exp(-double{args.shared_gate.data<float>()[t]}));
    }
    for (std::int64_t j = 0; j < hidden; ++j) {
      float sum = 0;
      for (std::int64_t i = t * num_chosen; i < (t + 1) * num_chosen; ++i) {
        sum += weights.data<float>()[i] * products.data<float>()[place[i] * hidden + j];
      }
      if (args.shared.defined()) {
        sum += static_cast<float>(factor * args.shared.data<float>()[t * hidden + j]);
      }
      out.data<float>()[t * hidden + j] = sum;
    }
  }
  return out;
}

}  // namespace pagoda::reference
