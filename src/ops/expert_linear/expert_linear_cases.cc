#include <algorithm>
#include <numeric>

#include "ops/expert_case.h"
#include "ops/expert_linear/expert_linear.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

// Returns the pairs of a token and an expert in the order in which group_by_expert sorts them.
std::vector<int> sorted_pairs(std::span<const std::int32_t> experts) {
  std::vector<int> pairs(experts.size());
  std::iota(pairs.begin(), pairs.end(), 0);
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](int a, int b) { return experts[a] < experts[b]; });
  return pairs;
}

}  // namespace

OpCase make_expert_linear_case(const ExpertShape& shape, SharedExpert shared) {
  OpCase result{.op = "expert_linear",
                .description = fmt::format("{}{}", description_of(shape),
                                           shared == SharedExpert::kNone    ? ""
                                           : shared == SharedExpert::kPlain ? ", shared"
                                                                            : ", shared and gated"),
                .num_tokens = shape.tokens};
  result.prepare = [shape, shared](Exec& exec, std::span<const int> tokens) -> Result<CaseRun> {
    std::vector<HostTensor> parts;
    for (int expert = 0; expert < shape.num_experts; ++expert) {
      parts.push_back(matrix_of_expert(shape, expert, 0));
    }
    PAGODA_ASSIGN_OR_RETURN(const ExpertWeight weight, prepare_experts(exec, parts, false));
    ExpertLinearArgs args;
    if (shape.has_bias) {
      args.bias =
          exec.upload<float>(random_values(2, weight.all.rows), {shape.num_experts, shape.dim});
    }
    const auto n = static_cast<std::int64_t>(tokens.size()), num_rows = n * shape.num_chosen;
    const std::int64_t all_rows = std::int64_t{shape.tokens} * shape.num_chosen;
    // Each token has rows of its own, in the order of its experts.
    const std::vector<float> of_tokens =
        take_rows(random_values(1, all_rows * shape.cols),
                  std::int64_t{shape.num_chosen} * shape.cols, tokens);
    const std::vector<std::int32_t> experts = experts_of(shape, tokens);
    const std::vector<float> sorted = take_rows(of_tokens, shape.cols, sorted_pairs(experts));
    const std::vector<float> weights =
        take_rows(random_values(3, all_rows), shape.num_chosen, tokens);
    const auto of_token = [&](std::uint32_t seed, std::int64_t width) {
      return upload_activations(
          exec, take_rows(random_values(seed, shape.tokens * width), width, tokens), {n, width});
    };
    if (shared != SharedExpert::kNone) args.shared = of_token(6, shape.dim);
    if (shared == SharedExpert::kGated) args.shared_gate = of_token(7, 1);
    const int block_rows = expert_block_rows(exec, n);
    return CaseRun([&exec, weight, args, block_rows,
                    x = upload_activations(exec, sorted, {num_rows, shape.cols}),
                    experts = exec.upload<std::int32_t>(experts, {n, shape.num_chosen}),
                    weights = exec.upload<float>(weights, {n, shape.num_chosen})] {
      const Routing routing = group_by_expert(
          exec, experts, {.num_experts = weight.num_experts, .block_rows = block_rows});
      return std::vector<Tensor>{expert_linear(exec, x, weight, routing, weights, args)};
    });
  };
  const double rows = 1.0 * shape.tokens * shape.num_chosen;
  result.flops = 2.0 * rows * shape.cols * shape.dim;
  result.bytes = 4.0 * (rows * shape.cols + shape.tokens * shape.dim) + bytes_of_experts(shape, 1);
  result.tolerance.cpu = result.tolerance.mlx = 1e-4f;  // as for linear (linear_cases.cc)
  if (shape.format.format == WeightFormat::kBF16)
    result.tolerance.cpu = result.tolerance.mlx = 1e-3f;
  result.is_large = shape.is_large;
  return result;
}

std::vector<OpCase> expert_linear_cases() {
  std::vector<OpCase> cases;
  for (const ExpertShape& shape : expert_shapes()) {
    const SharedExpert shared = shape.tokens == 2   ? SharedExpert::kPlain
                                : shape.tokens == 5 ? SharedExpert::kGated
                                                    : SharedExpert::kNone;
    cases.push_back(make_expert_linear_case(shape, shared));
  }
  return cases;
}

}  // namespace pagoda
