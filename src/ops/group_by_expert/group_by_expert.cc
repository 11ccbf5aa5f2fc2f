#include "ops/group_by_expert/group_by_expert.h"

#include <fmt/format.h>

#include "ops/route/route_rule.h"

namespace pagoda {

Routing group_by_expert(Exec& exec, const Tensor& experts, const GroupArgs& args) {
  PAGODA_CHECK(
      experts.shape().rank() == 2 && experts.dtype() == DType::kInt32 && experts.is_contiguous(),
      fmt::format("[group_by_expert] experts: expected contiguous int32 [tokens, "
                  "num_chosen], got {}",
                  to_string(experts.shape())));
  PAGODA_CHECK(
      args.num_experts >= 1 && args.num_experts <= kMostExperts && args.block_rows >= 1,
      fmt::format("[group_by_expert] expected 1 to {} experts and a block of rows, got {} and {}",
                  kMostExperts, args.num_experts, args.block_rows));
  const OpTimer timer(
      exec, [&] { return OpCall{.op = "group_by_expert", .read_bytes = bytes_of(experts)}; });
  static constexpr Bodies<decltype(reference::group_by_expert)> kBodies{
      reference::group_by_expert, cpu::group_by_expert, gpu::group_by_expert};
  return kBodies.of(exec)(exec, experts, args);
}

}  // namespace pagoda
