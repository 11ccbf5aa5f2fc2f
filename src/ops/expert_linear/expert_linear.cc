#include "ops/expert_linear/expert_linear.h"

#include <fmt/format.h>

#include <algorithm>

namespace pagoda {

int expert_block_rows(const Exec& exec, std::int64_t num_tokens) {
  static constexpr Bodies<decltype(reference::expert_block_rows)> kBodies{
      reference::expert_block_rows, cpu::expert_block_rows, gpu::expert_block_rows};
  return kBodies.of(exec)(exec, num_tokens);
}

void check_expert_product(std::string_view op, const Tensor& x, const ExpertWeight& weight,
                          const Routing& routing, const Tensor& bias) {
  PAGODA_CHECK(weight.defined() && weight.all.rows % weight.num_experts == 0,
               fmt::format("[{}] weight: expected a matrix for each expert", op));
  PAGODA_CHECK(
      x.shape().rank() == 2 && x.extent(1) == weight.cols() && x.stride(1) == 1,
      fmt::format("[{}] x: expected rows of {}, got {}", op, weight.cols(), to_string(x.shape())));
  const std::int64_t num_rows = routing.tokens.extent(0);
  PAGODA_CHECK(routing.places.shape().rank() == 2 &&
                   routing.places.shape().num_elements() == num_rows &&
                   routing.blocks.extent(0) ==
                       most_expert_blocks(num_rows, {weight.num_experts, routing.block_rows}),
               fmt::format("[{}] routing: expected one of {} experts", op, weight.num_experts));
  PAGODA_CHECK(!bias.defined() || (bias.dtype() == DType::kFloat32 &&
                                   bias.shape() == Shape{weight.num_experts, weight.rows()}),
               fmt::format("[{}] bias: expected {} x {} float32, got {}", op, weight.num_experts,
                           weight.rows(), to_string(bias.shape())));
}

OpCall expert_product_call(std::string_view op, const Exec& exec, const Tensor& x,
                           const ExpertWeight& weight, const Routing& routing) {
  const std::int64_t num_experts =
      traits_of(exec.backend()).is_native
          ? num_hit_experts(routing)
          : std::min<std::int64_t>(weight.num_experts, routing.tokens.extent(0));
  const double bytes_of_expert =
      static_cast<double>(weight.all.packed->num_bytes()) / weight.num_experts;
  return {.op = op,
          .format = weight.all.format,
          .rows = weight.rows(),
          .cols = weight.cols(),
          .read_bytes = static_cast<double>(num_experts) * bytes_of_expert + bytes_of(x),
          .products = static_cast<double>(routing.tokens.extent(0)) *
                      static_cast<double>(weight.rows()) * static_cast<double>(weight.cols())};
}

Tensor expert_linear(Exec& exec, const Tensor& x, const ExpertWeight& weight,
                     const Routing& routing, const Tensor& weights, const ExpertLinearArgs& args) {
  check_expert_product("expert_linear", x, weight, routing, args.bias);
  PAGODA_CHECK(x.is_contiguous() && x.extent(0) == routing.tokens.extent(0),
               fmt::format("[expert_linear] x: expected {} contiguous rows, got {}",
                           routing.tokens.extent(0), to_string(x.shape())));
  PAGODA_CHECK(weights.dtype() == DType::kFloat32 && weights.shape() == routing.places.shape() &&
                   weights.is_contiguous(),
               fmt::format("[expert_linear] weights: expected contiguous float32 {}, got {}",
                           to_string(routing.places.shape()), to_string(weights.shape())));
  const Shape of_out = {weights.extent(0), weight.rows()};
  PAGODA_CHECK(
      !args.shared.defined() || (args.shared.shape() == of_out && args.shared.is_contiguous()),
      fmt::format("[expert_linear] shared: expected contiguous {}, got {}", to_string(of_out),
                  to_string(args.shared.shape())));
  PAGODA_CHECK(!args.shared_gate.defined() ||
                   (args.shared.defined() && args.shared_gate.shape() == Shape{of_out[0], 1} &&
                    args.shared_gate.is_contiguous()),
               "[expert_linear] shared_gate: expected one beside `shared`, for each token");
  const OpTimer timer(
      exec, [&] { return expert_product_call("expert_linear", exec, x, weight, routing); });
  static constexpr Bodies<decltype(reference::expert_linear)> kBodies{
      reference::expert_linear, cpu::expert_linear, gpu::expert_linear};
  return kBodies.of(exec)(exec, x, weight, routing, weights, args);
}

}  // namespace pagoda
