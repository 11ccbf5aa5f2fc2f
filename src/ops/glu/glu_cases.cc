#include "ops/glu/glu.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

struct GluShape {
  int tokens;
  int dim;
  float magnitude = 1;
  Activation activation = Activation::kSilu;
  bool is_joined = true;  // gate and up are halves of a row; else up is the middle of another row
  bool is_large = false;
};

OpCase make_glu_case(const GluShape& shape) {
  OpCase result{.op = "glu",
                .description = fmt::format("{} x {}, magnitude {}, {}{}", shape.tokens, shape.dim,
                                           shape.magnitude, activation_name(shape.activation),
                                           shape.is_joined ? "" : ", apart"),
                .num_tokens = shape.tokens};
  result.prepare = [shape](Exec& exec, std::span<const int> tokens) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(tokens.size());
    const auto rows = [&](std::uint32_t seed, std::int64_t width) {
      const auto values = random_values(seed, shape.tokens * width, shape.magnitude);
      return upload_activations(exec, take_rows(values, width, tokens), {n, width});
    };
    const std::int64_t dim = shape.dim;
    GateAndUp x;
    if (shape.is_joined) {
      x = halves_of(rows(1, 2 * dim));
    } else {
      x = {.gate = rows(1, dim), .up = rows(2, 3 * dim).slice(1, dim, 2 * dim)};
    }
    return CaseRun([&exec, args = GluArgs{.activation = shape.activation}, x] {
      return std::vector<Tensor>{glu(exec, x.gate, x.up, args)};
    });
  };
  result.bytes = 12.0 * shape.tokens * shape.dim;
  result.flops = 5.0 * shape.tokens * shape.dim;
  result.is_large = shape.is_large;
  return result;
}

}  // namespace

std::vector<OpCase> glu_cases() {
  std::vector<OpCase> cases;
  for (GluShape shape : {
           GluShape{.tokens = 1, .dim = 1},
           GluShape{.tokens = 3, .dim = 37},
           GluShape{.tokens = 5, .dim = 64, .magnitude = 10},
           GluShape{.tokens = 2, .dim = 64, .magnitude = 200},  // exp(-x) overflows
           GluShape{.tokens = 33, .dim = 48},
           GluShape{.tokens = 512, .dim = 1536, .is_large = true},
       }) {
    for (const Activation activation :
         {Activation::kSilu, Activation::kGeluTanh, Activation::kSwigluOai}) {
      shape.activation = activation;
      for (const bool is_joined : {true, false}) {
        shape.is_joined = is_joined;
        if (is_joined || !shape.is_large) cases.push_back(make_glu_case(shape));
      }
    }
  }
  return cases;
}

}  // namespace pagoda
