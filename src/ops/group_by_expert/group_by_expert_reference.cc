#include <algorithm>
#include <numeric>
#include <vector>

#include "ops/group_by_expert/group_by_expert.h"

namespace pagoda::reference {

Routing group_by_expert(Exec& exec, const Tensor& experts, const GroupArgs& args) {
  const std::int64_t num_chosen = experts.extent(1), num_rows = experts.shape().num_elements();
  Routing routing = allocate_routing(exec, experts, args);
  const auto* expert_of = experts.data<std::int32_t>();
  std::vector<int> pairs(num_rows);  // in the order of rows
  std::iota(pairs.begin(), pairs.end(), 0);
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](int a, int b) { return expert_of[a] < expert_of[b]; });
  auto* block = routing.blocks.data<std::int32_t>();
  std::fill_n(block, routing.blocks.shape().num_elements(), 0);
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
