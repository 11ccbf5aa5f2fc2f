#include "ops/linear/linear.h"

#include <fmt/format.h>

namespace pagoda {

void check_product(std::string_view op, const Tensor& x, const Weight& weight, const Tensor& bias) {
  PAGODA_CHECK(weight.defined(),
               fmt::format("[{}] weight: expected a packed matrix, got none", op));
  PAGODA_CHECK(
      x.shape().rank() == 2 && x.extent(1) == weight.cols && x.stride(1) == 1,
      fmt::format("[{}] x: expected [tokens, {}], got {}", op, weight.cols, to_string(x.shape())));
  PAGODA_CHECK(
      !bias.defined() || (bias.dtype() == DType::kFloat32 && bias.shape() == Shape{weight.rows}),
      fmt::format("[{}] bias: expected {} float32, got {} {}", op, weight.rows,
                  to_string(bias.shape()), dtype_name(bias.dtype())));
}

OpCall product_call(std::string_view op, const Tensor& x, const Weight& weight) {
  return {.op = op,
          .format = weight.format,
          .rows = weight.rows,
          .cols = weight.cols,
          .read_bytes = static_cast<double>(weight.packed->num_bytes()) + bytes_of(x),
          .products = static_cast<double>(x.extent(0)) * static_cast<double>(weight.rows) *
                      static_cast<double>(weight.cols)};
}

int row_tile(const Exec& exec) {
  constexpr auto kOneRow = [](const Exec& /*exec*/) { return 1; };
  static constexpr Bodies<int(const Exec&)> kBodies{kOneRow, cpu::row_tile, kOneRow};
  return kBodies.of(exec)(exec);
}

void choose_prefetch(Exec& exec) {
  constexpr auto kNothing = [](Exec& /*exec*/) {};
  static constexpr Bodies<void(Exec&)> kBodies{kNothing, cpu::choose_prefetch, kNothing};
  kBodies.of(exec)(exec);
}

Tensor linear(Exec& exec, const Tensor& x, const Weight& weight, const LinearArgs& args) {
  check_product("linear", x, weight, args.bias);
  const OpTimer timer(exec, [&] { return product_call("linear", x, weight); });
  static constexpr Bodies<decltype(reference::linear)> kBodies{reference::linear, cpu::linear,
                                                               gpu::linear};
  return kBodies.of(exec)(exec, x, weight, args);
}

}  // namespace pagoda
