#include "ops/op_cases.h"
#include "ops/soft_cap/soft_cap.h"

namespace pagoda {
namespace {

struct CappedShape {
  int rows;
  int dim;
  float cap;
  float magnitude = 10;
  bool is_large = false;
};

OpCase make_soft_cap_case(const CappedShape& shape) {
  OpCase result{.op = "soft_cap",
                .description = fmt::format("{} x {} of up to {} in {}", shape.rows, shape.dim,
                                           shape.magnitude, shape.cap),
                .num_tokens = shape.rows};
  result.prepare = [shape](Exec& exec, std::span<const int> rows) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(rows.size());
    const auto values = random_values(1, std::int64_t{shape.rows} * shape.dim, shape.magnitude);
    return CaseRun([&exec, cap = shape.cap,
                    x = exec.upload<float>(take_rows(values, shape.dim, rows), {n, shape.dim})] {
      return std::vector<Tensor>{soft_cap(exec, x, {.cap = cap})};
    });
  };
  result.bytes = 8.0 * shape.rows * shape.dim;
  result.flops = 20.0 * shape.rows * shape.dim;
  result.is_large = shape.is_large;
  return result;
}

}  // namespace

std::vector<OpCase> soft_cap_cases() {
  std::vector<OpCase> cases;
  for (const CappedShape& shape : {
           CappedShape{.rows = 1, .dim = 1, .cap = 30},
           CappedShape{.rows = 3, .dim = 37, .cap = 5},
           CappedShape{.rows = 2, .dim = 5000, .cap = 30},
           CappedShape{.rows = 4, .dim = 64, .cap = 30, .magnitude = 1000},
           CappedShape{.rows = 4, .dim = 64, .cap = 50, .magnitude = 0.001f},
           CappedShape{.rows = 1, .dim = 262144, .cap = 30, .is_large = true},
       }) {
    cases.push_back(make_soft_cap_case(shape));
  }
  return cases;
}

}  // namespace pagoda
