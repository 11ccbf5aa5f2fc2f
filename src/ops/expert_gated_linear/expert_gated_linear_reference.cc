#include <algorithm>

#include "backend/reference/reference_weight.h"
#include "ops/expert_gated_linear/expert_gated_linear.h"
#include "ops/gated_linear/gated_linear.h"
#include "ops/select_rows/select_rows.h"

namespace pagoda::reference {

Tensor expert_gated_linear(Exec& exec, const Tensor& x, const ExpertWeight& weight,
                           const Routing& routing, const ExpertGatedLinearArgs& args) {
  const std::int64_t num_rows = routing.tokens.extent(0), dim = weight.rows() / 2;
  Tensor out = exec.allocate(DType::kFloat32, {num_rows, dim});
  for (std::int64_t i = 0; i < routing.blocks.extent(0); ++i) {
    const auto* block = routing.blocks.data<std::int32_t>() + 3 * i;
    const int expert = block[0], first = block[1], count = block[2];
    if (count == 0) break;
    GatedLinearArgs of_expert = {.glu = args.glu};
    if (args.bias.defined()) {
      of_expert.bias = args.bias.slice(0, expert, expert + 1).view({2 * dim});
    }
    const Tensor rows =
        reference::select_rows(exec, x, routing.tokens.slice(0, first, first + count));
    const Tensor results = reference::gated_linear(exec, rows, weight_of_expert(weight, expert),
                                                   of_expert);  // [count, dim]
    std::copy_n(results.data<float>(), count * dim, out.data<float>() + first * dim);
  }
  return out;
}

}  // namespace pagoda::reference
