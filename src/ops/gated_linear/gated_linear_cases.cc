#include "ops/gated_linear/gated_linear.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

struct GatedShape {
  int tokens;
  int cols;
  int dim;
  WeightFormat gate;
  WeightFormat up;
  bool has_bias = false;
  Activation activation = Activation::kSilu;
  bool is_large = false;
};

OpCase make_gated_linear_case(const GatedShape& shape) {
  OpCase result{
      .op = "gated_linear",
      .description = fmt::format("{} x {} -> {}, {} and {}{}{}", shape.tokens, shape.cols,
                                 shape.dim, traits_of(shape.gate).name, traits_of(shape.up).name,
                                 shape.has_bias ? ", bias" : "",
                                 shape.activation == Activation::kSilu
                                     ? ""
                                     : fmt::format(", {}", activation_name(shape.activation))),
      .num_tokens = shape.tokens};
  result.prepare = [shape](Exec& exec, std::span<const int> tokens) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(tokens.size());
    const HostTensor parts[] = {random_matrix(100, shape.gate, shape.dim, shape.cols),
                                random_matrix(101, shape.up, shape.dim, shape.cols)};
    PAGODA_ASSIGN_OR_RETURN(const Weight weight, prepare_weight(exec, parts, WeightUse::kGated));
    GatedLinearArgs args = {.glu = {.activation = shape.activation, .limit = 2}};
    if (shape.has_bias) {
      args.bias = exec.upload<float>(random_values(2, weight.rows), {weight.rows});
    }
    const auto values = random_values(1, std::int64_t{shape.tokens} * shape.cols);
    return CaseRun(
        [&exec, weight, args,
         x = upload_activations(exec, take_rows(values, shape.cols, tokens), {n, shape.cols})] {
          return std::vector<Tensor>{gated_linear(exec, x, weight, args)};
        });
  };
  const double weights = 1.0 * shape.cols * shape.dim;
  result.flops = 4.0 * shape.tokens * weights;
  result.bytes = 4.0 * shape.tokens * (shape.cols + shape.dim) +
                 static_cast<double>(
                     packed_bytes(CaseFormat(shape.gate), std::int64_t{shape.cols} * shape.dim) +
                     packed_bytes(CaseFormat(shape.up), std::int64_t{shape.cols} * shape.dim));
  result.tolerance.cpu = result.tolerance.mlx = 1e-4f;  // as for linear (linear_cases.cc)
  if (shape.gate == WeightFormat::kBF16) result.tolerance.cpu = result.tolerance.mlx = 1e-3f;
  result.is_large = shape.is_large;
  return result;
}

}  // namespace

std::vector<OpCase> gated_linear_cases() {
  std::vector<OpCase> cases;
  for (const int tokens : {1, 2, 5, 13, 32}) {
    cases.push_back(make_gated_linear_case({.tokens = tokens,
                                            .cols = 96,
                                            .dim = 80,
                                            .gate = WeightFormat::kQ4_1,
                                            .up = WeightFormat::kQ4_1}));
    cases.push_back(make_gated_linear_case({.tokens = tokens,
                                            .cols = 64,
                                            .dim = 37,
                                            .gate = WeightFormat::kQ8_0,
                                            .up = WeightFormat::kQ4_1,
                                            .has_bias = true}));
    cases.push_back(make_gated_linear_case(
        {.tokens = tokens,
         .cols = 64,
         .dim = 48,
         .gate = WeightFormat::kQ4_0,
         .up = tokens == 5 ? WeightFormat::kQ8_0 : WeightFormat::kQ4_0,
         .has_bias = tokens == 2,
         .activation = tokens == 13 ? Activation::kSwigluOai : Activation::kGeluTanh}));
  }
  for (const int tokens : {1, 37}) {
    cases.push_back(make_gated_linear_case({.tokens = tokens,
                                            .cols = 300,
                                            .dim = 80,
                                            .gate = WeightFormat::kBF16,
                                            .up = WeightFormat::kBF16}));
  }
  cases.push_back(make_gated_linear_case(
      {.tokens = 3, .cols = 64, .dim = 1, .gate = WeightFormat::kF32, .up = WeightFormat::kF32}));
  for (const int tokens : {1, 32, 512}) {
    cases.push_back(make_gated_linear_case({.tokens = tokens,
                                            .cols = 576,
                                            .dim = 1536,
                                            .gate = WeightFormat::kQ4_1,
                                            .up = WeightFormat::kQ4_1,
                                            .is_large = true}));
  }
  return cases;
}

}  // namespace pagoda
