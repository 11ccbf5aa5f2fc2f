#include "ops/expert_case.h"
#include "ops/group_by_expert/group_by_expert.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

// Makes a case in which all tokens count as a single one, because a row's place depends on all.
OpCase make_group_by_expert_case(int tokens, int num_chosen, int num_experts, int block_rows) {
  OpCase result{.op = "group_by_expert",
                .description = fmt::format("{} x {} of {}, blocks of {}", tokens, num_chosen,
                                           num_experts, block_rows),
                .num_tokens = 1,
                .rows_are_tokens = false,
                .tolerance = {.cpu = 0, .mlx = 0, .cuda = 0}};
  result.prepare = [=](Exec& exec, std::span<const int>) -> Result<CaseRun> {
    const Tensor experts = exec.upload<std::int32_t>(
        random_experts(1, tokens, num_chosen, num_experts), {tokens, num_chosen});
    return CaseRun([&exec, experts, num_experts, block_rows] {
      Routing routing =
          group_by_expert(exec, experts, {.num_experts = num_experts, .block_rows = block_rows});
      return std::vector<Tensor>{std::move(routing.tokens), std::move(routing.places),
                                 std::move(routing.blocks)};
    });
  };
  result.bytes = 12.0 * tokens * num_chosen;
  return result;
}

}  // namespace

std::vector<OpCase> group_by_expert_cases() {
  return {make_group_by_expert_case(1, 1, 1, 4),     make_group_by_expert_case(1, 8, 128, 32),
          make_group_by_expert_case(9, 1, 2, 4),     make_group_by_expert_case(8, 2, 3, 4),
          make_group_by_expert_case(37, 5, 33, 4),   make_group_by_expert_case(200, 4, 16, 32),
          make_group_by_expert_case(64, 10, 512, 4), make_group_by_expert_case(512, 8, 128, 32)};
}

}  // namespace pagoda
