#include "ops/rope/rope_cases.h"

#include <cmath>

#include "ops/op_cases.h"
#include "ops/rope/rope.h"

namespace pagoda {
namespace {

Tensor upload_positions(Exec& exec, std::span<const int> tokens, int first_position) {
  std::vector<std::int32_t> positions;
  for (const int token : tokens) positions.push_back(first_position + token);
  return exec.upload<std::int32_t>(positions, {static_cast<std::int64_t>(tokens.size())});
}

}  // namespace

Tensor upload_inverse_frequencies(Exec& exec, int head_dim) {
  std::vector<float> values(head_dim / 2);
  for (int i = 0; i < head_dim / 2; ++i) {
    values[i] = static_cast<float>(std::pow(10000.0, -2.0 * i / head_dim));
  }
  return exec.upload<float>(values, {head_dim / 2});
}

Tensor case_angles(Exec& exec, std::span<const int> tokens, int first_position, int head_dim,
                   const RopeAnglesArgs& args) {
  return rope_angles(exec, upload_positions(exec, tokens, first_position),
                     upload_inverse_frequencies(exec, head_dim), args);
}

namespace {

struct RopeShape {
  int tokens;
  int heads;
  int head_dim;
  RopeStyle style;
  int first_position;
  bool is_large = false;
  int rotary_dim = 0;  // 0: head_dim
};

OpCase make_angles_case(int tokens, int head_dim, int first_position,
                        const RopeAnglesArgs& args = {}) {
  OpCase result{.op = "rope_angles",
                .description = fmt::format("{} x {} from position {}{}{}", tokens, head_dim,
                                           first_position, args.factor == 1 ? "" : ", of a factor",
                                           args.growth == 0 ? "" : ", that grows"),
                .num_tokens = tokens,
                .tolerance = {.cpu = 1e-7f, .mlx = 2e-7f}};
  result.prepare = [=](Exec& exec, std::span<const int> wanted) -> Result<CaseRun> {
    return CaseRun([&exec, args, at = upload_positions(exec, wanted, first_position),
                    inv_freq = upload_inverse_frequencies(exec, head_dim)] {
      return std::vector<Tensor>{rope_angles(exec, at, inv_freq, args)};
    });
  };
  result.bytes = 4.0 * tokens * head_dim;
  return result;
}

OpCase make_rope_case(const RopeShape& shape) {
  const int rotary_dim = shape.rotary_dim == 0 ? shape.head_dim : shape.rotary_dim;
  OpCase result{
      .op = "rope",
      .description = fmt::format("{} x {} x {} from position {}, {} rotated, {}", shape.tokens,
                                 shape.heads, shape.head_dim, shape.first_position, rotary_dim,
                                 shape.style == RopeStyle::kHalves ? "halves" : "adjacent"),
      .num_tokens = shape.tokens};
  result.prepare = [shape, rotary_dim](Exec& exec, std::span<const int> tokens) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(tokens.size());
    const std::int64_t part = std::int64_t{shape.heads} * shape.head_dim;
    const std::int64_t width = part + 8;  // a part of a joined product
    const auto values = random_values(1, shape.tokens * width);
    return CaseRun([&exec, style = shape.style,
                    x = upload_activations(exec, take_rows(values, width, tokens), {n, width})
                            .slice(1, 0, part)
                            .split_last(shape.heads, shape.head_dim),
                    angles = case_angles(exec, tokens, shape.first_position, rotary_dim)] {
      return std::vector<Tensor>{rope(exec, x, angles, {.style = style})};
    });
  };
  const double elements = double{1} * shape.tokens * shape.heads * shape.head_dim;
  result.bytes = 8 * elements;
  result.flops = 3 * elements;
  result.is_large = shape.is_large;
  return result;
}

}  // namespace

std::vector<OpCase> rope_cases() {
  std::vector<OpCase> cases;
  for (const RopeStyle style : {RopeStyle::kHalves, RopeStyle::kAdjacent}) {
    for (const RopeShape& shape : {
             RopeShape{1, 1, 2, style, 0},
             RopeShape{5, 3, 24, style, 100},
             RopeShape{2, 1, 256, style, 5},
             RopeShape{3, 2, 64, style, 0},
             RopeShape{9, 4, 128, style, 131'000},
             RopeShape{512, 9, 64, style, 0, true},
             RopeShape{3, 2, 24, style, 7, false, 6},
             RopeShape{5, 3, 128, style, 100, false, 96},
             RopeShape{2, 2, 256, style, 9, false, 64},
             RopeShape{2, 2, 64, style, 9, false, 2},
         }) {
      cases.push_back(make_rope_case(shape));
    }
  }
  // Long contexts need exact angles.
  for (const int first_position : {0, 131'000, 1'048'000}) {
    cases.push_back(make_angles_case(1, 64, first_position));
    cases.push_back(make_angles_case(9, 128, first_position));
    cases.push_back(make_angles_case(9, 96, first_position, {.factor = 1.19f}));
    cases.push_back(make_angles_case(9, 128, first_position,
                                     {.factor = 1.1f, .growth = 0.1f, .growth_positions = 4}));
  }
  return cases;
}

}  // namespace pagoda
