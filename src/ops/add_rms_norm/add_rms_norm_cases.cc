#include "ops/add_rms_norm/add_rms_norm.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

OpCase make_add_rms_norm_case(int tokens, int dim, bool is_large) {
  OpCase result{.op = "add_rms_norm",
                .description = fmt::format("{} x {}", tokens, dim),
                .num_tokens = tokens};
  result.prepare = [tokens, dim](Exec& exec, std::span<const int> rows) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(rows.size());
    const auto upload = [&](std::uint32_t seed) {
      return upload_activations(
          exec, take_rows(random_values(seed, std::int64_t{tokens} * dim), dim, rows), {n, dim});
    };
    return CaseRun([&exec, x = upload(1), delta = upload(2),
                    weight = exec.upload<float>(random_values(3, dim), {dim})] {
      AddRmsNormResult added = add_rms_norm(exec, x, delta, weight, {.eps = 1e-5f});
      return std::vector<Tensor>{added.sum, added.normed};
    });
  };
  result.bytes = 16.0 * tokens * dim;
  result.flops = 5.0 * tokens * dim;
  result.is_large = is_large;
  return result;
}

}  // namespace

std::vector<OpCase> add_rms_norm_cases() {
  return {make_add_rms_norm_case(1, 64, false),   make_add_rms_norm_case(7, 577, false),
          make_add_rms_norm_case(33, 96, false),  make_add_rms_norm_case(3, 2305, false),
          make_add_rms_norm_case(2, 9000, false), make_add_rms_norm_case(512, 576, true)};
}

}  // namespace pagoda
