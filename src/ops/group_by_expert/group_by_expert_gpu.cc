#include "backend/gpu/gpu_op.h"
#include "ops/group_by_expert/group_by_expert.h"
#include "ops/group_by_expert/group_by_expert_metal.h"
#include "ops/metal_sources.h"

namespace pagoda::gpu {

Routing group_by_expert(Exec& exec, const Tensor& experts, const GroupArgs& args) {
  const std::int64_t num_chosen = experts.extent(1), num_rows = experts.extent(0) * num_chosen;
  const std::int64_t most_blocks = most_expert_blocks(num_rows, args);
  GpuOp op{.name = "group_by_expert",
           .inputs = {experts},
           .outputs = {{DType::kInt32, {num_rows}},
                       {DType::kInt32, experts.shape()},
                       {DType::kInt32, {most_blocks, 3}}}};
  if (uses_kernels(exec)) {
    const int simd_groups = num_groups_of(args.num_experts, 32);
    op.launch = {
        .dispatches = {{.function = {&kGroupByExpertMetal, "group_by_expert"},
                        .buffers = {input(0), output(0), output(1), output(2)},
                        .parameters = GroupParameters{.num_rows = static_cast<int>(num_rows),
                                                      .num_chosen = static_cast<int>(num_chosen),
                                                      .num_experts = args.num_experts,
                                                      .block_rows = args.block_rows,
                                                      .most_blocks = static_cast<int>(most_blocks)},
                        .num_threads = 32 * simd_groups,
                        .threadgroup_bytes = static_cast<int>(32 * sizeof(int))}},
        .bytes = bytes_of(experts)};
  } else {
    op.host = [args](Exec& host, std::span<const Tensor> in) {
      Routing routing = cpu::group_by_expert(host, in[0], args);
      return std::vector<Tensor>{std::move(routing.tokens), std::move(routing.places),
                                 std::move(routing.blocks)};
    };
  }
  std::vector<Tensor> results = run(exec, std::move(op));
  return {.tokens = std::move(results[0]),
          .places = std::move(results[1]),
          .blocks = std::move(results[2]),
          .block_rows = args.block_rows};
}

}  // namespace pagoda::gpu
