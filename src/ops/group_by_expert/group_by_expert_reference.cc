#include <algorithm>
#include <numeric>
#include <vector>

#include "ops/group_by_expert/group_by_expert.h"

namespace pagoda::reference {

Routing group_by_expert(Exec& exec, const Tensor& experts, const GroupArgs& args) {
  const std::int64_t num_chosen = experts.extent(1), num_rows = experts.extent(0) * num_chosen;
  const std::int64_t most_blocks = most_expert_blocks(num_rows, args);
  Routing routing = {.tokens = exec.allocate(DType::kInt32, {num_rows}),
                     .places = exec.allocate(DType::kInt32, experts.shape()),
                     .blocks = exec.allocate(DType::kInt32, {most_blocks, 3}),
                     .block_rows = args.block_rows};
  const auto* expert_of = experts.data<std::int32_t>();
  std::vector<int> pairs(num_rows);  // in the order of rows
  std::iota(pairs.begin(), pairs.end(), 0);
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](int a, int b) { return expert_of[a] < expert_of[b]; });
  auto* block = routing.blocks.data<std::int32_t>();
  std::fill(block, block + 3 * most_blocks, 0);
  block -= 3;  // the first row moves to the first block
  for (int row = 0; row < num_rows; ++row) {
    const int pair = pairs[row], expert = expert_of[pair];
    routing.tokens.data<std::int32_t>()[row] = pair / static_cast<int>(num_chosen);
    routing.places.data<std::int32_t>()[pair] = row;
    if (row == 0 || block[0] != expert || block[2] == args.block_rows) {
      block += 3;
      block[0] = expert;
      block[1] = row;
    }
    ++block[2];
  }
  return routing;
}

}  // namespace pagoda::reference
