#include "backend/gpu/gpu_op.h"
#include "ops/metal_sources.h"
#include "ops/route/route.h"
#include "ops/route/route_metal.h"

namespace pagoda::gpu {
namespace {

constexpr int kTokensOfGroup = 8;

// Returns how many experts a lane takes, as a template argument.
std::string_view lane_experts(std::int64_t num_experts) {
  if (num_experts <= 32) return "1";
  if (num_experts <= 64) return "2";
  if (num_experts <= 128) return "4";
  return num_experts <= 256 ? "8" : "16";
}

RouteParameters parameters_of(const Tensor& logits, const RouteArgs& args) {
  const RouteRule& rule = args.rule;
  return {.num_tokens = static_cast<int>(logits.extent(0)),
          .num_experts = static_cast<int>(logits.extent(1)),
          .num_chosen = rule.num_chosen,
          .num_groups = rule.num_groups,
          .num_chosen_groups = rule.num_chosen_groups,
          .is_sigmoid = rule.gating == Gating::kSigmoid,
          .is_softmax_of_chosen = rule.gating == Gating::kSoftmaxOfChosen,
          .has_bias = args.choice_bias.defined(),
          .has_scales = args.expert_scales.defined(),
          .is_normalised = rule.is_normalised,
          .least_sum = rule.least_sum,
          .sum_offset = rule.sum_offset,
          .factor = rule.factor,
          .logit_cap = rule.logit_cap};
}

}  // namespace

Routes route(Exec& exec, const Tensor& logits, const RouteArgs& args) {
  const Shape shape = {logits.extent(0), args.rule.num_chosen};
  const bool has_bias = args.choice_bias.defined(), has_scales = args.expert_scales.defined();
  GpuOp op{.name = "route",
           .inputs = {logits},
           .outputs = {{DType::kInt32, shape}, {DType::kFloat32, shape}}};
  if (has_bias) op.inputs.push_back(args.choice_bias);
  if (has_scales) op.inputs.push_back(args.expert_scales);
  if (uses_kernels(exec)) {
    op.launch = {
        .dispatches = {{.function = {&kRouteMetal, "route", {lane_experts(logits.extent(1))}},
                        .buffers = {input(0), input(has_bias ? 1 : 0),
                                    input(static_cast<int>(has_scales ? op.inputs.size() - 1 : 0)),
                                    output(0), output(1)},
                        .parameters = parameters_of(logits, args),
                        .num_groups = {num_groups_of(logits.extent(0), kTokensOfGroup), 1, 1},
                        .num_threads = 32 * kTokensOfGroup}},
        .bytes = bytes_of(logits)};
  } else {
    op.host = [rule = args.rule, has_bias, has_scales](Exec& host, std::span<const Tensor> in) {
      Routes routes = cpu::route(host, in[0],
                                 {.rule = rule,
                                  .choice_bias = has_bias ? in[1] : Tensor(),
                                  .expert_scales = has_scales ? in.back() : Tensor()});
      return std::vector<Tensor>{std::move(routes.experts), std::move(routes.weights)};
    };
  }
  std::vector<Tensor> results = run(exec, std::move(op));
  return {.experts = std::move(results[0]), .weights = std::move(results[1])};
}

}  // namespace pagoda::gpu
