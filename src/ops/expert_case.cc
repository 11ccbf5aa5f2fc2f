#include "ops/expert_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <set>

namespace pagoda {

std::vector<std::int32_t> random_experts(std::uint32_t seed, int tokens, int num_chosen,
                                         int num_experts) {
  std::mt19937 generator(seed);
  std::vector<std::int32_t> all(num_experts), experts;
  for (int t = 0; t < tokens; ++t) {
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin() + (t % 4 == 0 ? 1 : 0), all.end(), generator);
    experts.insert(experts.end(), all.begin(), all.begin() + num_chosen);
  }
  return experts;
}

std::string description_of(const ExpertShape& shape) {
  return fmt::format(
      "{} x {} of {}, {} -> {}, {}{}{}{}", shape.tokens, shape.num_chosen, shape.num_experts,
      shape.cols, shape.dim, name_of(shape.format),
      name_of(shape.up) == name_of(shape.format) ? "" : fmt::format(" and {}", name_of(shape.up)),
      shape.has_bias ? ", bias" : "", shape.last_is_nan ? ", one is NaN" : "");
}

std::vector<std::int32_t> experts_of(const ExpertShape& shape, std::span<const int> tokens) {
  const std::vector<std::int32_t> all = random_experts(
      5, shape.tokens, shape.num_chosen, shape.num_experts - (shape.last_is_nan ? 1 : 0));
  std::vector<std::int32_t> experts;
  for (const int t : tokens) {
    const auto first = all.begin() + std::ptrdiff_t{t} * shape.num_chosen;
    experts.insert(experts.end(), first, first + shape.num_chosen);
  }
  return experts;
}

HostTensor matrix_of_expert(const ExpertShape& shape, int expert, int part) {
  HostTensor matrix = random_matrix(100 + 2 * expert + part, part == 0 ? shape.format : shape.up,
                                    shape.dim, shape.cols);
  if (shape.last_is_nan && expert == shape.num_experts - 1) {
    // All bits of a number are set: NaN in each of the plain formats.
    auto* bytes = const_cast<std::byte*>(matrix.bytes.data());
    std::memset(bytes, 0xff, matrix.bytes.size());
  }
  return matrix;
}

double bytes_of_experts(const ExpertShape& shape, int num_parts) {
  std::vector<int> tokens(shape.tokens);
  std::iota(tokens.begin(), tokens.end(), 0);
  const std::vector<std::int32_t> experts = experts_of(shape, tokens);
  const std::set<std::int32_t> distinct(experts.begin(), experts.end());
  const std::int64_t values = std::int64_t{shape.cols} * shape.dim;
  const std::int64_t of_expert =
      packed_bytes(shape.format, values) + (num_parts == 2 ? packed_bytes(shape.up, values) : 0);
  return static_cast<double>(distinct.size()) * static_cast<double>(of_expert);
}

std::vector<ExpertShape> expert_shapes() {
  using enum WeightFormat;
  std::vector<ExpertShape> shapes;
  for (const int tokens : {1, 2, 5, 13, 32}) {
    shapes.push_back({.tokens = tokens,
                      .num_chosen = 2,
                      .num_experts = 6,
                      .cols = 96,
                      .dim = 80,
                      .format = kQ4_1,
                      .up = kQ4_1,
                      .has_bias = tokens == 5});
    shapes.push_back({.tokens = tokens,
                      .num_chosen = 3,
                      .num_experts = 4,
                      .cols = 64,
                      .dim = 37,
                      .format = kQ8_0,
                      .up = kQ8_0,
                      .has_bias = true});
  }
  shapes.push_back({.tokens = 7,
                    .num_chosen = 4,
                    .num_experts = 9,
                    .cols = 300,
                    .dim = 40,
                    .format = kBF16,
                    .up = kBF16,
                    .last_is_nan = true});
  shapes.push_back({.tokens = 3,
                    .num_chosen = 1,
                    .num_experts = 3,
                    .cols = 64,
                    .dim = 1,
                    .format = kF32,
                    .up = kF32,
                    .last_is_nan = true});
  // Experts with more rows than a block of any backend has.
  shapes.push_back({.tokens = 450, .num_chosen = 2, .num_experts = 2, .cols = 32, .dim = 32});
  for (const int tokens : {1, 8, 512}) {
    shapes.push_back({.tokens = tokens,
                      .num_chosen = 8,
                      .num_experts = 128,
                      .cols = 2048,
                      .dim = 768,
                      .is_large = true});
  }
  return shapes;
}

}  // namespace pagoda
