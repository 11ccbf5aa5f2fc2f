#include "ops/linear/linear_cases.h"

#include <algorithm>

#include "ops/linear/linear.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

int num_rows(const LinearShape& shape) {
  int rows = 0;
  for (const LinearPart& part : shape.parts) rows += part.rows;
  return rows;
}

std::string describe(const LinearShape& shape) {
  std::string parts;
  for (const LinearPart& part : shape.parts) {
    parts += fmt::format("{}{} {}", parts.empty() ? "" : " + ", part.rows, name_of(part.format));
  }
  return fmt::format("{} x {} -> {}{}", shape.tokens, shape.cols, parts,
                     shape.has_bias ? ", bias" : "");
}

std::vector<OpCase> make_cases(std::span<const LinearShape> shapes) {
  std::vector<OpCase> cases;
  cases.reserve(shapes.size());
  for (const LinearShape& shape : shapes) cases.push_back(make_linear_case(shape));
  return cases;
}

}  // namespace

std::vector<HostTensor> linear_parts(const LinearShape& shape) {
  std::vector<HostTensor> parts;
  for (const LinearPart& part : shape.parts) {
    const auto seed = static_cast<std::uint32_t>(100 + parts.size());
    parts.push_back(random_matrix(seed, part.format, part.rows, shape.cols));
  }
  return parts;
}

std::vector<float> linear_inputs(const LinearShape& shape) {
  return random_values(1, std::int64_t{shape.tokens} * (shape.cols + shape.x_padding),
                       shape.magnitude);
}

std::vector<float> linear_bias(const LinearShape& shape) {
  return random_values(2, num_rows(shape));
}

// Returns the tolerance of a case. x is rounded to integers block by block. The error is half of:
// - the block's largest magnitude / 32767;
// - with 16-bit weights, that magnitude / 4095 (on AVX-512 / 2047 at worst);
// - the largest magnitude of 256 k / 16383, if blocks have float minima, or integer scales and no
//   minima.
// On AMX the error of scales is up to 2^-13 of the largest one of 256 k. Affine codes are unsigned:
// most of their products cancels against the biases', but the error does not.
float cpu_tolerance(const LinearShape& shape) {
  float tolerance = 4e-5f;
  for (const LinearPart& part : shape.parts) {
    const WeightFormat format = part.format.format;
    const bool is_wide = format == WeightFormat::kF16 || format == WeightFormat::kBF16;
    const bool has_float_minima = format == WeightFormat::kQ4_1 || format == WeightFormat::kQ5_1;
    const bool has_integer_minima = format == WeightFormat::kQ2_K ||
                                    format == WeightFormat::kQ4_K || format == WeightFormat::kQ5_K;
    const bool has_integer_scales = traits_of(format).block_size == 256;
    if (is_wide) tolerance = 4e-4f;
    if (has_float_minima || (has_integer_scales && !has_integer_minima))
      tolerance = std::max(tolerance, 1e-4f);
    if (format == WeightFormat::kAffine) tolerance = std::max(tolerance, 1e-4f);
  }
  return tolerance;
}

OpCase make_linear_case(const LinearShape& shape) {
  OpCase result{.op = "linear", .description = describe(shape), .num_tokens = shape.tokens};
  result.prepare = [shape](Exec& exec, std::span<const int> tokens) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(tokens.size());
    const std::int64_t width = shape.cols + shape.x_padding;
    PAGODA_ASSIGN_OR_RETURN(const Weight weight, prepare_weight(exec, linear_parts(shape)));
    LinearArgs args;
    if (shape.has_bias) args.bias = exec.upload<float>(linear_bias(shape), {weight.rows});
    const auto values = take_rows(linear_inputs(shape), width, tokens);
    return CaseRun([&exec, weight, args,
                    x = upload_activations(exec, values, {n, width}).slice(1, 0, shape.cols)] {
      return std::vector<Tensor>{linear(exec, x, weight, args)};
    });
  };
  const double rows = num_rows(shape);
  result.flops = 2.0 * shape.tokens * shape.cols * rows;
  result.bytes = 4.0 * shape.tokens * (shape.cols + rows);
  for (const LinearPart& part : shape.parts) {
    result.bytes +=
        static_cast<double>(packed_bytes(part.format, std::int64_t{part.rows} * shape.cols));
  }
  result.tolerance.cpu = result.tolerance.mlx = cpu_tolerance(shape);
  result.is_large = shape.is_large;
  return result;
}

namespace {

// Returns a width of at least `cols` that is a multiple of the format's block.
int cols_at_least(int cols, WeightFormat format) {
  const int block = traits_of(format).block_size;
  return (cols + block - 1) / block * block;
}

void add_format_shapes(WeightFormat format, std::vector<LinearShape>& shapes) {
  const auto cols = [&](int least) { return cols_at_least(least, format); };
  // Rows that fill panels and row blocks, and rows that do not.
  for (const int tokens : {1, 2, 5, 13, 32}) {
    shapes.push_back({.tokens = tokens, .cols = cols(96), .parts = {{format, 48}}});
    shapes.push_back(
        {.tokens = tokens, .cols = cols(64), .parts = {{format, 37}}, .has_bias = true});
  }
  shapes.push_back({.tokens = 3, .cols = cols(32), .parts = {{format, 1}}});
  shapes.push_back({.tokens = 3, .cols = cols(288), .parts = {{format, 80}}, .magnitude = 1000});
  for (const int tokens : {1, 8, 512}) {
    shapes.push_back(
        {.tokens = tokens, .cols = cols(576), .parts = {{format, 3072}}, .is_large = true});
    shapes.push_back(
        {.tokens = tokens, .cols = cols(1536), .parts = {{format, 576}}, .is_large = true});
  }
  shapes.push_back({.tokens = 1, .cols = cols(576), .parts = {{format, 49152}}, .is_large = true});
}

void add_affine_shapes(std::vector<LinearShape>& shapes) {
  constexpr auto kBF16 = WeightFormat::kBF16;
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group_size : {32, 64, 128}) {
      const AffineLayout layout{bits, group_size, kBF16};
      for (const int tokens : {1, 5, 32}) {
        shapes.push_back({.tokens = tokens, .cols = 256, .parts = {{layout, 48}}});
      }
      shapes.push_back({.tokens = 3, .cols = group_size, .parts = {{layout, 1}}});
      shapes.push_back({.tokens = 13, .cols = 128, .parts = {{layout, 37}}, .has_bias = true});
      for (const int tokens : {1, 512}) {
        shapes.push_back(
            {.tokens = tokens, .cols = 1536, .parts = {{layout, 576}}, .is_large = true});
      }
    }
    shapes.push_back({.tokens = 2,
                      .cols = 192,
                      .parts = {{AffineLayout{bits, 64, WeightFormat::kF16}, 20},
                                {AffineLayout{bits, 32, WeightFormat::kF32}, 33}}});
  }
  // Parts of several formats, like q, k and v of a mixed checkpoint.
  shapes.push_back({.tokens = 5,
                    .cols = 64,
                    .parts = {{AffineLayout{4, 64, kBF16}, 48},
                              {AffineLayout{6, 64, kBF16}, 16},
                              {WeightFormat::kBF16, 7}},
                    .has_bias = true});
}

}  // namespace

std::vector<OpCase> linear_cases() {
  std::vector<LinearShape> shapes;
  for (const WeightFormat format : kWeightFormats) add_format_shapes(format, shapes);
  shapes.push_back(
      {.tokens = 5,
       .cols = 64,
       .parts = {{WeightFormat::kQ4_1, 48}, {WeightFormat::kQ8_0, 20}, {WeightFormat::kBF16, 7}},
       .has_bias = true});
  shapes.push_back(
      {.tokens = 14, .cols = 64, .parts = {{WeightFormat::kQ4_1, 33}}, .x_padding = 5});
  shapes.push_back({.tokens = 2, .cols = 7, .parts = {{WeightFormat::kBF16, 19}}});
  shapes.push_back({.tokens = 1, .cols = 1, .parts = {{WeightFormat::kF32, 3}}});
  shapes.push_back({.tokens = 9, .cols = 131, .parts = {{WeightFormat::kF16, 17}}});
  add_affine_shapes(shapes);
  return make_cases(shapes);
}

}  // namespace pagoda
