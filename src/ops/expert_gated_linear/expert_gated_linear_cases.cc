#include "ops/expert_case.h"
#include "ops/expert_gated_linear/expert_gated_linear.h"
#include "ops/op_cases.h"
#include "ops/select_rows/select_rows.h"

namespace pagoda {

OpCase make_expert_gated_linear_case(const ExpertShape& shape, Activation activation) {
  OpCase result{
      .op = "expert_gated_linear",
      .description = fmt::format("{}, {}", description_of(shape), activation_name(activation)),
      .num_tokens = shape.tokens};
  result.prepare = [shape, activation](Exec& exec, std::span<const int> tokens) -> Result<CaseRun> {
    std::vector<HostTensor> parts;
    for (int expert = 0; expert < shape.num_experts; ++expert) {
      for (const int part : {0, 1}) parts.push_back(matrix_of_expert(shape, expert, part));
    }
    PAGODA_ASSIGN_OR_RETURN(const ExpertWeight weight, prepare_experts(exec, parts, true));
    ExpertGatedLinearArgs args = {.glu = {.activation = activation, .limit = 2}};
    if (shape.has_bias) {
      args.bias =
          exec.upload<float>(random_values(2, weight.all.rows), {shape.num_experts, weight.rows()});
    }
    const auto n = static_cast<std::int64_t>(tokens.size()), num_rows = n * shape.num_chosen;
    const auto values = random_values(1, std::int64_t{shape.tokens} * shape.cols);
    const int block_rows = expert_block_rows(exec, n);
    return CaseRun(
        [&exec, weight, args, num_rows, block_rows,
         x = upload_activations(exec, take_rows(values, shape.cols, tokens), {n, shape.cols}),
         experts = exec.upload<std::int32_t>(experts_of(shape, tokens), {n, shape.num_chosen})] {
          const Routing routing = group_by_expert(
              exec, experts, {.num_experts = weight.num_experts, .block_rows = block_rows});
          const Tensor sorted = expert_gated_linear(exec, x, weight, routing, args);
          return std::vector<Tensor>{select_rows(exec, sorted, routing.places.view({num_rows}))};
        });
  };
  const double rows = 1.0 * shape.tokens * shape.num_chosen;
  result.flops = 4.0 * rows * shape.cols * shape.dim;
  result.bytes = 4.0 * (shape.tokens * shape.cols + rows * shape.dim) + bytes_of_experts(shape, 2);
  result.tolerance.cpu = result.tolerance.mlx = 1e-4f;  // as for linear (linear_cases.cc)
  if (shape.format.format == WeightFormat::kBF16)
    result.tolerance.cpu = result.tolerance.mlx = 1e-3f;
  result.is_large = shape.is_large;
  return result;
}

std::vector<OpCase> expert_gated_linear_cases() {
  std::vector<OpCase> cases;
  for (const ExpertShape& shape : expert_shapes()) {
    cases.push_back(make_expert_gated_linear_case(shape));
  }
  for (const int tokens : {1, 9}) {
    cases.push_back(make_expert_gated_linear_case({.tokens = tokens,
                                                   .num_chosen = 2,
                                                   .num_experts = 5,
                                                   .cols = 64,
                                                   .dim = 48,
                                                   .format = WeightFormat::kQ4_0,
                                                   .up = WeightFormat::kQ8_0},
                                                  Activation::kGeluTanh));
    cases.push_back(make_expert_gated_linear_case({.tokens = tokens,
                                                   .num_chosen = 2,
                                                   .num_experts = 5,
                                                   .cols = 96,
                                                   .dim = 48,
                                                   .format = WeightFormat::kMXFP4,
                                                   .up = WeightFormat::kMXFP4,
                                                   .has_bias = true},
                                                  Activation::kSwigluOai));
  }
  return cases;
}

}  // namespace pagoda
