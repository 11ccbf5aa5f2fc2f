// group_by_expert: sorts the rows of a mixture's products by expert, so that a product reads each
// expert's weights once (Gale et al., "MegaBlocks", 2022, arXiv:2211.15841).
#pragma once

#include <algorithm>

#include "ops/dispatch.h"
#include "tensor/tensor.h"

namespace pagoda {

struct GroupArgs {
  int num_experts = 0;  // of the layer
  int block_rows = 0;   // the most rows of a block: expert_block_rows()
};

// A row is a token and one of its experts. Rows are in the order of experts, and an expert's rows in
// the order of tokens.
struct Routing {
  Tensor tokens;  // [rows] int32: each row's token
  Tensor places;  // [tokens, num_chosen] int32: the row of each token's i-th expert
  // [most_expert_blocks(), 3] int32: an expert, the first of some of its rows, and their number.
  // Blocks are in the order of rows. Unused ones are last, and have no rows.
  Tensor blocks;
  int block_rows = 0;
};

// Returns how many blocks there are at most, whatever the experts are.
inline std::int64_t most_expert_blocks(std::int64_t num_rows, const GroupArgs& args) {
  return num_rows / args.block_rows + std::min<std::int64_t>(args.num_experts, num_rows);
}

// Allocates a routing of `experts` on a native backend, its values undefined.
inline Routing allocate_routing(Exec& exec, const Tensor& experts, const GroupArgs& args) {
  const std::int64_t num_rows = experts.shape().num_elements();
  return {.tokens = exec.allocate(DType::kInt32, {num_rows}),
          .places = exec.allocate(DType::kInt32, experts.shape()),
          .blocks = exec.allocate(DType::kInt32, {most_expert_blocks(num_rows, args), 3}),
          .block_rows = args.block_rows};
}

// Returns the number of experts that have rows. REQUIRES: the routing is a native backend's.
inline std::int64_t num_hit_experts(const Routing& routing) {
  std::int64_t count = 0;
  const auto* blocks = routing.blocks.data<std::int32_t>();
  for (std::int64_t i = 0; i < routing.blocks.extent(0) && blocks[3 * i + 2] > 0; ++i) {
    if (i == 0 || blocks[3 * i] != blocks[3 * i - 3]) ++count;
  }
  return count;
}

// Groups the rows of `experts`, [tokens, num_chosen] int32, contiguous, each in [0, num_experts). A
// token's experts are distinct.
Routing group_by_expert(Exec& exec, const Tensor& experts, const GroupArgs& args);

PAGODA_DECLARE_BODIES(Routing group_by_expert(Exec& exec, const Tensor& experts,
                                              const GroupArgs& args))

}  // namespace pagoda
