#include "ops/op_cases.h"
#include "ops/route/route.h"

namespace pagoda {
namespace {

struct RouteShape {
  int tokens;
  int num_experts;
  RouteRule rule;
  bool has_bias = false;
  bool has_scales = false;
  float magnitude = 4;  // 0: all logits are equal
  bool is_large = false;
};

std::string description_of(const RouteShape& shape) {
  const RouteRule& rule = shape.rule;
  std::string text = fmt::format("{} x {} of {}, {}, magnitude {}", shape.tokens, rule.num_chosen,
                                 shape.num_experts, gating_name(rule.gating), shape.magnitude);
  if (rule.num_groups > 1) {
    text += fmt::format(", {} of {} groups", rule.num_chosen_groups, rule.num_groups);
  }
  if (rule.is_normalised) {
    text += fmt::format(", normalised by max({}) + {}", rule.least_sum, rule.sum_offset);
  }
  if (rule.factor != 1) text += fmt::format(", times {}", rule.factor);
  if (rule.logit_cap != 0) text += fmt::format(", capped at {}", rule.logit_cap);
  if (shape.has_bias) text += ", biased";
  if (shape.has_scales) text += ", scaled";
  return text;
}

OpCase make_route_case(const RouteShape& shape) {
  OpCase result{.op = "route", .description = description_of(shape), .num_tokens = shape.tokens};
  result.prepare = [shape](Exec& exec, std::span<const int> tokens) -> Result<CaseRun> {
    const std::int64_t n = shape.num_experts;
    const auto values = random_values(1, shape.tokens * n, shape.magnitude);
    const auto vector = [&](bool is_there, std::uint32_t seed) {
      return is_there ? upload_as(exec, DType::kFloat32, random_values(seed, n), {n}) : Tensor();
    };
    const auto num_tokens = static_cast<std::int64_t>(tokens.size());
    return CaseRun(
        [&exec,
         logits = upload_as(exec, DType::kFloat32, take_rows(values, n, tokens), {num_tokens, n}),
         args = RouteArgs{.rule = shape.rule,
                          .choice_bias = vector(shape.has_bias, 2),
                          .expert_scales = vector(shape.has_scales, 3)}] {
          Routes routes = route(exec, logits, args);
          return std::vector<Tensor>{std::move(routes.experts), std::move(routes.weights)};
        });
  };
  result.bytes = 4.0 * shape.tokens * shape.num_experts;
  result.is_large = shape.is_large;
  return result;
}

}  // namespace

std::vector<OpCase> route_cases() {
  const RouteRule mixtral = {.num_chosen = 2, .is_normalised = true};
  const RouteRule glm = {.num_chosen = 8,
                         .gating = Gating::kSigmoid,
                         .is_normalised = true,
                         .sum_offset = 1e-20f,
                         .factor = 2.5f};
  RouteRule grouped = glm;
  grouped.num_groups = 8;
  grouped.num_chosen_groups = 3;
  RouteRule groups_of_one = grouped;
  groups_of_one.num_chosen = 3;
  const RouteRule ernie = {.num_chosen = 6, .is_normalised = true, .least_sum = 0.75f};
  const RouteRule gpt_oss = {.num_chosen = 4, .gating = Gating::kSoftmaxOfChosen};
  const RouteRule capped = {
      .num_chosen = 5, .gating = Gating::kSigmoid, .is_normalised = true, .logit_cap = 3};
  std::vector<OpCase> cases;
  for (const RouteShape& shape : {
           RouteShape{.tokens = 1, .num_experts = 1, .rule = {}},
           RouteShape{.tokens = 9, .num_experts = 8, .rule = mixtral},
           RouteShape{.tokens = 20, .num_experts = 37, .rule = {.num_chosen = 3}},
           RouteShape{.tokens = 5, .num_experts = 128, .rule = {.num_chosen = 8}, .magnitude = 60},
           RouteShape{.tokens = 3, .num_experts = 129, .rule = glm, .has_bias = true},
           RouteShape{.tokens = 9, .num_experts = 64, .rule = grouped, .has_bias = true},
           RouteShape{.tokens = 4, .num_experts = 256, .rule = grouped},
           RouteShape{.tokens = 4, .num_experts = 8, .rule = groups_of_one, .has_bias = true},
           RouteShape{.tokens = 17, .num_experts = 64, .rule = ernie, .has_bias = true},
           RouteShape{.tokens = 9, .num_experts = 32, .rule = gpt_oss},
           RouteShape{.tokens = 3, .num_experts = 512, .rule = capped, .has_scales = true},
           RouteShape{.tokens = 3, .num_experts = 128, .rule = {.num_chosen = 32}, .magnitude = 0},
           RouteShape{.tokens = 3, .num_experts = 64, .rule = grouped, .magnitude = 0},
           RouteShape{
               .tokens = 512, .num_experts = 128, .rule = {.num_chosen = 8}, .is_large = true},
       }) {
    cases.push_back(make_route_case(shape));
  }
  return cases;
}

}  // namespace pagoda
