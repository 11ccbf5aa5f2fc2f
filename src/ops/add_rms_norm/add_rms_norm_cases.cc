#include "ops/add_rms_norm/add_rms_norm.h"

#include <utility>

#include "ops/op_cases.h"

namespace pagoda {
namespace {

struct AddedShape {
  int tokens;
  int dim;
  bool is_normed = true;
  bool has_delta_norm = false;
  float delta_factor = 1;
  float sum_factor = 1;
  bool is_large = false;
};

OpCase make_add_rms_norm_case(const AddedShape& shape) {
  OpCase result{.op = "add_rms_norm",
                .description = fmt::format("{} x {}{}{}{}{}", shape.tokens, shape.dim,
                                           shape.has_delta_norm ? ", of a norm" : "",
                                           shape.delta_factor != 1 ? ", of a factor" : "",
                                           shape.sum_factor != 1 ? ", times a factor" : "",
                                           shape.is_normed ? "" : ", without a norm"),
                .num_tokens = shape.tokens};
  result.prepare = [shape](Exec& exec, std::span<const int> rows) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(rows.size());
    const std::int64_t dim = shape.dim;
    const auto activations = [&](std::uint32_t seed) {
      return upload_activations(exec, take_rows(random_values(seed, shape.tokens * dim), dim, rows),
                                {n, dim});
    };
    const auto norm = [&](bool is_there, std::uint32_t seed) {
      return is_there ? exec.upload<float>(random_values(seed, dim), {dim}) : Tensor();
    };
    const AddRmsNormArgs args = {.eps = 1e-5f,
                                 .delta_norm = norm(shape.has_delta_norm, 4),
                                 .delta_factor = shape.delta_factor,
                                 .sum_factor = shape.sum_factor};
    return CaseRun([&exec, args, x = activations(1), delta = activations(2),
                    weight = norm(shape.is_normed, 3)] {
      AddRmsNormResult added = add_rms_norm(exec, x, delta, weight, args);
      return std::vector<Tensor>{added.sum, added.normed};
    });
  };
  result.bytes = 16.0 * shape.tokens * shape.dim;
  result.flops = 5.0 * shape.tokens * shape.dim;
  result.is_large = shape.is_large;
  return result;
}

}  // namespace

std::vector<OpCase> add_rms_norm_cases() {
  std::vector<OpCase> cases;
  for (const auto& [tokens, dim] : {std::pair(1, 64), {7, 577}, {33, 96}, {3, 2305}, {2, 9000}}) {
    cases.push_back(make_add_rms_norm_case({.tokens = tokens, .dim = dim}));
    cases.push_back(make_add_rms_norm_case({.tokens = tokens, .dim = dim, .has_delta_norm = true}));
    cases.push_back(make_add_rms_norm_case({.tokens = tokens,
                                            .dim = dim,
                                            .is_normed = false,
                                            .has_delta_norm = true,
                                            .delta_factor = 0.3f}));
    cases.push_back(make_add_rms_norm_case({.tokens = tokens, .dim = dim, .delta_factor = 0.22f}));
    cases.push_back(make_add_rms_norm_case(
        {.tokens = tokens, .dim = dim, .has_delta_norm = true, .sum_factor = 0.4f}));
  }
  cases.push_back(make_add_rms_norm_case({.tokens = 512, .dim = 576, .is_large = true}));
  cases.push_back(make_add_rms_norm_case(
      {.tokens = 512, .dim = 1152, .has_delta_norm = true, .is_large = true}));
  return cases;
}

}  // namespace pagoda
