#include "ops/op_cases.h"
#include "ops/select_rows/select_rows.h"

namespace pagoda {
namespace {

// Makes a case of `num_rows` rows out of [tokens, dim], backwards and with repetitions.
OpCase make_select_rows_case(int tokens, int dim, int num_rows) {
  OpCase result{.op = "select_rows",
                .description = fmt::format("{} of {} x {}", num_rows, tokens, dim),
                .num_tokens = num_rows,
                .tolerance = {.cpu = 0, .mlx = 0, .cuda = 0}};
  result.prepare = [=](Exec& exec, std::span<const int> wanted) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(wanted.size());
    std::vector<std::int32_t> rows;
    for (const int i : wanted) rows.push_back((tokens - 1 + 3 * (num_rows - i)) % tokens);
    return CaseRun(
        [&exec,
         x = upload_activations(exec, random_values(1, std::int64_t{tokens} * dim), {tokens, dim}),
         at = exec.upload<std::int32_t>(rows, {n})] {
          return std::vector<Tensor>{select_rows(exec, x, at)};
        });
  };
  result.bytes = 8.0 * num_rows * dim;
  return result;
}

}  // namespace

std::vector<OpCase> select_rows_cases() {
  return {make_select_rows_case(1, 1, 1), make_select_rows_case(9, 64, 4),
          make_select_rows_case(5, 577, 12)};
}

}  // namespace pagoda
