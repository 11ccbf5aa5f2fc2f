#include "ops/op_cases.h"
#include "ops/swiglu/swiglu.h"

namespace pagoda {
namespace {

struct SwigluShape {
  int tokens;
  int dim;
  float magnitude = 1;
  bool is_large = false;
};

OpCase make_swiglu_case(const SwigluShape& shape) {
  OpCase result{
      .op = "swiglu",
      .description = fmt::format("{} x {}, magnitude {}", shape.tokens, shape.dim, shape.magnitude),
      .num_tokens = shape.tokens};
  result.prepare = [shape](Exec& exec, std::span<const int> tokens) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(tokens.size());
    const std::int64_t width = 2 * shape.dim;
    const auto values = random_values(1, shape.tokens * width, shape.magnitude);
    return CaseRun(
        [&exec, x = upload_activations(exec, take_rows(values, width, tokens), {n, width})] {
          return std::vector<Tensor>{swiglu(exec, x)};
        });
  };
  result.bytes = 12.0 * shape.tokens * shape.dim;
  result.flops = 5.0 * shape.tokens * shape.dim;
  result.is_large = shape.is_large;
  return result;
}

}  // namespace

std::vector<OpCase> swiglu_cases() {
  std::vector<OpCase> cases;
  for (const SwigluShape& shape : {
           SwigluShape{.tokens = 1, .dim = 1},
           SwigluShape{.tokens = 3, .dim = 37},
           SwigluShape{.tokens = 5, .dim = 64, .magnitude = 10},
           SwigluShape{.tokens = 2, .dim = 64, .magnitude = 200},  // exp(-x) overflows
           SwigluShape{.tokens = 33, .dim = 48},
           SwigluShape{.tokens = 512, .dim = 1536, .is_large = true},
       }) {
    cases.push_back(make_swiglu_case(shape));
  }
  return cases;
}

}  // namespace pagoda
