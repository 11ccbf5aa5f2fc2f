// expert_gated_linear on cpu: as gated_linear_cpu.cc, for the rows of each expert.
#include "ops/expert_gated_linear/expert_gated_linear.h"

#include <algorithm>

#include "ops/expert_linear/expert_product.h"
#include "ops/gated_linear/gated_linear_cpu.h"

namespace pagoda::cpu {

Tensor expert_gated_linear(Exec& exec, const Tensor& x, const ExpertWeight& weight,
                           const Routing& routing, const ExpertGatedLinearArgs& args) {
  constexpr std::int64_t kPairColumns = 2 * kPanelColumns;
  const std::int64_t dim = weight.rows() / 2;
  Tensor out = exec.allocate(DType::kFloat32, {routing.tokens.extent(0), dim});
  const ExpertProduct product(exec, weight, x, ExpertRows::kOfTokens, routing);
  const std::int64_t block_rows =
      std::min<std::int64_t>(routing.block_rows, routing.tokens.extent(0));
  const Tensor memory =
      exec.allocate(DType::kFloat32, {exec.num_threads(), block_rows, 2 * kPairColumns});
  product.for_each_piece([&](const ExpertPiece& piece) {
    float* const products = memory.data<float>() + piece.thread * memory.stride(0);
    for (std::int64_t pair = piece.first_pair; pair < piece.end_pair; ++pair) {
      const std::int64_t column = pair * kPairColumns;
      const float* const bias =
          args.bias.defined() ? args.bias.data<float>() + piece.expert * 2 * dim + column : nullptr;
      product.multiply(piece, 0, 2 * pair, 2 * pair + 2, products, 2 * kPairColumns, bias);
      product.multiply(piece, 1, 2 * pair, 2 * pair + 2, products + kPairColumns, 2 * kPairColumns,
                       bias != nullptr ? bias + dim : nullptr);
      gate_columns({products, kPairColumns, piece.num_rows, std::min(dim - column, kPairColumns),
                    out.data<float>() + piece.first_row * dim + column, dim},
                   args.glu);
    }
  });
  return out;
}

}  // namespace pagoda::cpu
