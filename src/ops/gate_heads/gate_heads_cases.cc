#include "ops/gate_heads/gate_heads.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

struct GatedHeadsShape {
  int tokens;
  int gates;
  int width;            // of a gate
  float magnitude = 3;  // of gates
  bool is_large = false;
};

OpCase make_gate_heads_case(const GatedHeadsShape& shape) {
  OpCase result{.op = "gate_heads",
                .description = fmt::format("{} x {} gates of {}, up to {}", shape.tokens,
                                           shape.gates, shape.width, shape.magnitude),
                .num_tokens = shape.tokens};
  result.prepare = [shape](Exec& exec, std::span<const int> tokens) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(tokens.size());
    const auto rows = [&](std::uint32_t seed, std::int64_t width, float magnitude) {
      const auto values = random_values(seed, shape.tokens * width, magnitude);
      return exec.upload<float>(take_rows(values, width, tokens), {n, width});
    };
    const std::int64_t dim = std::int64_t{shape.gates} * shape.width;
    return CaseRun([&exec, x = rows(1, dim, 1), gate = rows(2, shape.gates, shape.magnitude)] {
      return std::vector<Tensor>{gate_heads(exec, x, gate)};
    });
  };
  const double elements = 1.0 * shape.tokens * shape.gates * shape.width;
  result.bytes = 8 * elements + 4.0 * shape.tokens * shape.gates;
  result.flops = 20 * elements;
  result.is_large = shape.is_large;
  return result;
}

}  // namespace

std::vector<OpCase> gate_heads_cases() {
  std::vector<OpCase> cases;
  for (const GatedHeadsShape& shape : {
           GatedHeadsShape{.tokens = 1, .gates = 1, .width = 1},
           GatedHeadsShape{.tokens = 3, .gates = 6, .width = 32},
           GatedHeadsShape{.tokens = 5, .gates = 37, .width = 1},
           GatedHeadsShape{.tokens = 2, .gates = 300, .width = 1, .magnitude = 30},
           GatedHeadsShape{.tokens = 9, .gates = 5, .width = 7, .magnitude = 200},
           GatedHeadsShape{.tokens = 512, .gates = 48, .width = 128, .is_large = true},
           GatedHeadsShape{.tokens = 512, .gates = 6144, .width = 1, .is_large = true},
       }) {
    cases.push_back(make_gate_heads_case(shape));
  }
  return cases;
}

}  // namespace pagoda
