#include "ops/op_cases.h"
#include "ops/rms_norm/rms_norm.h"

namespace pagoda {
namespace {

struct RmsNormShape {
  int tokens;
  int heads;  // 0: x is [tokens, dim]; else [tokens, heads, dim], a part of a joined product
  int dim;
  float magnitude = 1;
  float eps = 1e-5f;
  bool is_large = false;
};

OpCase make_rms_norm_case(const RmsNormShape& shape) {
  OpCase result{.op = "rms_norm",
                .description = fmt::format("{} x {} x {}, magnitude {}", shape.tokens, shape.heads,
                                           shape.dim, shape.magnitude),
                .num_tokens = shape.tokens};
  result.prepare = [shape](Exec& exec, std::span<const int> tokens) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(tokens.size());
    const std::int64_t part = std::max(shape.heads, 1) * shape.dim;
    const std::int64_t width = shape.heads > 0 ? part + 32 : part;
    const auto values = random_values(1, shape.tokens * width, shape.magnitude);
    Tensor x = upload_activations(exec, take_rows(values, width, tokens), {n, width});
    if (shape.heads > 0) x = x.slice(1, 16, 16 + part).split_last(shape.heads, shape.dim);
    const Tensor weight = exec.upload<float>(random_values(2, shape.dim), {shape.dim});
    return CaseRun([&exec, x, weight, eps = shape.eps] {
      return std::vector<Tensor>{rms_norm(exec, x, weight, {.eps = eps})};
    });
  };
  const double elements = double{1} * shape.tokens * std::max(shape.heads, 1) * shape.dim;
  result.bytes = 8 * elements;
  result.flops = 4 * elements;
  result.is_large = shape.is_large;
  return result;
}

}  // namespace

std::vector<OpCase> rms_norm_cases() {
  std::vector<OpCase> cases;
  for (const RmsNormShape& shape : {
           RmsNormShape{.tokens = 1, .heads = 0, .dim = 1},
           RmsNormShape{.tokens = 5, .heads = 0, .dim = 64},
           RmsNormShape{.tokens = 3, .heads = 0, .dim = 577},  // no vector divides it
           RmsNormShape{.tokens = 2, .heads = 0, .dim = 2305},
           RmsNormShape{.tokens = 2, .heads = 0, .dim = 9000},
           RmsNormShape{.tokens = 4, .heads = 3, .dim = 24},
           RmsNormShape{.tokens = 3, .heads = 2, .dim = 18},
           RmsNormShape{.tokens = 9, .heads = 0, .dim = 320},
           RmsNormShape{.tokens = 4, .heads = 2, .dim = 128},
           RmsNormShape{.tokens = 2, .heads = 0, .dim = 96, .magnitude = 1e15f},
           RmsNormShape{.tokens = 2, .heads = 0, .dim = 96, .magnitude = 1e-4f},
           RmsNormShape{.tokens = 2, .heads = 0, .dim = 40, .magnitude = 0},
           RmsNormShape{.tokens = 512, .heads = 0, .dim = 576, .is_large = true},
       }) {
    cases.push_back(make_rms_norm_case(shape));
  }
  return cases;
}

}  // namespace pagoda
