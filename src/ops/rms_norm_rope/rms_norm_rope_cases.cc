#include "ops/op_cases.h"
#include "ops/rms_norm_rope/rms_norm_rope.h"
#include "ops/rope/rope_cases.h"

namespace pagoda {
namespace {

struct HeadsShape {
  int tokens;
  int heads;
  int head_dim;
  RopeStyle style = RopeStyle::kHalves;
  bool is_large = false;
};

OpCase make_rms_norm_rope_case(const HeadsShape& shape) {
  OpCase result{
      .op = "rms_norm_rope",
      .description = fmt::format("{} x {} x {}, {}", shape.tokens, shape.heads, shape.head_dim,
                                 shape.style == RopeStyle::kHalves ? "halves" : "adjacent"),
      .num_tokens = shape.tokens};
  result.prepare = [shape](Exec& exec, std::span<const int> tokens) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(tokens.size());
    const std::int64_t part = std::int64_t{shape.heads} * shape.head_dim;
    const std::int64_t width = part + 8;  // a part of a joined product
    const auto values = take_rows(random_values(1, shape.tokens * width), width, tokens);
    return CaseRun([&exec, style = shape.style,
                    x = upload_activations(exec, values, {n, width})
                            .slice(1, 0, part)
                            .split_last(shape.heads, shape.head_dim),
                    weight = exec.upload<float>(random_values(2, shape.head_dim), {shape.head_dim}),
                    angles = case_angles(exec, tokens, /*first_position=*/0, shape.head_dim)] {
      return std::vector<Tensor>{
          rms_norm_rope(exec, x, weight, angles, {.norm = {.eps = 1e-5f}, .rope = {style}})};
    });
  };
  const double elements = double{1} * shape.tokens * shape.heads * shape.head_dim;
  result.bytes = 8 * elements;
  result.flops = 7 * elements;
  result.is_large = shape.is_large;
  return result;
}

}  // namespace

std::vector<OpCase> rms_norm_rope_cases() {
  std::vector<OpCase> cases;
  for (const RopeStyle style : {RopeStyle::kHalves, RopeStyle::kAdjacent}) {
    for (const HeadsShape& shape :
         {HeadsShape{1, 1, 2, style}, HeadsShape{5, 3, 24, style}, HeadsShape{33, 4, 128, style}}) {
      cases.push_back(make_rms_norm_rope_case(shape));
    }
  }
  cases.push_back(
      make_rms_norm_rope_case({.tokens = 512, .heads = 16, .head_dim = 128, .is_large = true}));
  return cases;
}

}  // namespace pagoda
