#include "ops/clamp/clamp.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

struct ClampShape {
  int rows;
  int dim;
  float limit;
  int begin = 0;   // x is the columns from here on of wider rows
  int behind = 0;  // columns behind x's
  bool is_large = false;
};

OpCase make_clamp_case(const ClampShape& shape) {
  const int width = shape.begin + shape.dim + shape.behind;
  OpCase result{.op = "clamp",
                .description = fmt::format("{} x {} of {} from {}, to {}", shape.rows, shape.dim,
                                           width, shape.begin, shape.limit),
                .num_tokens = shape.rows};
  result.prepare = [shape, width](Exec& exec, std::span<const int> rows) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(rows.size());
    const auto values = random_values(1, std::int64_t{shape.rows} * width, 10);
    const Tensor joined = exec.upload<float>(take_rows(values, width, rows), {n, width});
    return CaseRun(
        [&exec, limit = shape.limit, x = joined.slice(1, shape.begin, shape.begin + shape.dim)] {
          return std::vector<Tensor>{clamp(exec, x, {.limit = limit})};
        });
  };
  result.bytes = 8.0 * shape.rows * shape.dim;
  result.flops = 2.0 * shape.rows * shape.dim;
  result.is_large = shape.is_large;
  return result;
}

}  // namespace

std::vector<OpCase> clamp_cases() {
  std::vector<OpCase> cases;
  for (const ClampShape& shape : {
           ClampShape{.rows = 1, .dim = 1, .limit = 4},
           ClampShape{.rows = 3, .dim = 37, .limit = 8, .begin = 5, .behind = 2},
           ClampShape{.rows = 2, .dim = 5000, .limit = 5, .behind = 8},
           ClampShape{.rows = 4, .dim = 64, .limit = 0.001f, .begin = 16},
           ClampShape{.rows = 4, .dim = 64, .limit = 1000},
           ClampShape{.rows = 512, .dim = 2048, .limit = 5, .behind = 4096, .is_large = true},
       }) {
    cases.push_back(make_clamp_case(shape));
  }
  return cases;
}

}  // namespace pagoda
