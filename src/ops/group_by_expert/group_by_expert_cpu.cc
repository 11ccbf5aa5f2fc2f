// A counting sort on the calling thread: a step's few thousand rows take it some microseconds.
#include <algorithm>
#include <array>

#include "ops/group_by_expert/group_by_expert.h"
#include "ops/route/route_rule.h"

namespace pagoda::cpu {
namespace {

// Writes the blocks of each expert's rows. first_rows [num_experts + 1]
void write_blocks(const int* first_rows, const GroupArgs& args, std::int64_t most_blocks,
                  std::int32_t* blocks) {
  std::int32_t* block = blocks;
  for (int expert = 0; expert < args.num_experts; ++expert) {
    for (int row = first_rows[expert]; row < first_rows[expert + 1]; row += args.block_rows) {
      *block++ = expert;
      *block++ = row;
      *block++ = std::min(args.block_rows, first_rows[expert + 1] - row);
    }
  }
  std::fill(block, blocks + 3 * most_blocks, 0);
}

}  // namespace

Routing group_by_expert(Exec& exec, const Tensor& experts, const GroupArgs& args) {
  const std::int64_t num_chosen = experts.extent(1), num_rows = experts.shape().num_elements();
  Routing routing = allocate_routing(exec, experts, args);
  const auto* expert_of = experts.data<std::int32_t>();
  std::array<int, kMostExperts + 1> first_rows = {};
  for (std::int64_t pair = 0; pair < num_rows; ++pair) ++first_rows[expert_of[pair] + 1];
  for (int expert = 0; expert < args.num_experts; ++expert) {
    first_rows[expert + 1] += first_rows[expert];
  }
  write_blocks(first_rows.data(), args, routing.blocks.extent(0),
               routing.blocks.data<std::int32_t>());
  auto* tokens = routing.tokens.data<std::int32_t>();
  auto* place = routing.places.data<std::int32_t>();
  for (std::int64_t t = 0; t < experts.extent(0); ++t) {
    for (std::int64_t i = 0; i < num_chosen; ++i, ++place) {
      *place = first_rows[expert_of[t * num_chosen + i]]++;
      tokens[*place] = static_cast<std::int32_t>(t);
    }
  }
  return routing;
}

}  // namespace pagoda::cpu
