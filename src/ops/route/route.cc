#include "ops/route/route.h"

#include <fmt/format.h>

#include <utility>

namespace pagoda {
namespace {

void check_experts(const char* name, const Tensor& values, std::int64_t num_experts) {
  PAGODA_CHECK(!values.defined() ||
                   (values.dtype() == DType::kFloat32 && values.shape() == Shape{num_experts}),
               fmt::format("[route] {}: expected {} float32, got {}", name, num_experts,
                           to_string(values.shape())));
}

RouteBody& replaced_body() {
  static RouteBody body;
  return body;
}

}  // namespace

ReplacedRoute::ReplacedRoute(RouteBody body) {
  replaced_body() = std::move(body);
}

ReplacedRoute::~ReplacedRoute() {
  replaced_body() = nullptr;
}

Routes route(Exec& exec, const Tensor& logits, const RouteArgs& args) {
  const RouteRule& rule = args.rule;
  PAGODA_CHECK(logits.shape().rank() == 2 && logits.dtype() == DType::kFloat32 &&
                   logits.is_contiguous() && logits.extent(1) <= kMostExperts,
               fmt::format("[route] logits: expected contiguous float32 [tokens, experts], got {}",
                           to_string(logits.shape())));
  const std::int64_t num_experts = logits.extent(1);
  PAGODA_CHECK(rule.num_groups >= 1 && rule.num_groups <= kMostExpertGroups &&
                   num_experts % rule.num_groups == 0 && rule.num_chosen_groups >= 1 &&
                   rule.num_chosen_groups <= rule.num_groups,
               "[route] groups: expected some of groups of equal size");
  PAGODA_CHECK(rule.num_chosen >= 1 && rule.num_chosen <= kMostChosenExperts &&
                   rule.num_chosen <= num_experts / rule.num_groups * rule.num_chosen_groups,
               fmt::format("[route] cannot choose {} of {} experts", rule.num_chosen, num_experts));
  check_experts("choice_bias", args.choice_bias, num_experts);
  check_experts("expert_scales", args.expert_scales, num_experts);
  if (const RouteBody& replaced = replaced_body()) return replaced(exec, logits, args);
  const OpTimer timer(exec, [&] { return OpCall{.op = "route", .read_bytes = bytes_of(logits)}; });
  static constexpr Bodies<decltype(reference::route)> kBodies{reference::route, cpu::route,
                                                              gpu::route};
  return kBodies.of(exec)(exec, logits, args);
}

}  // namespace pagoda
