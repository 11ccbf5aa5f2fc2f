#include "ops/gated_linear/gated_linear.h"

#include <fmt/format.h>

namespace pagoda {

Tensor gated_linear(Exec& exec, const Tensor& x, const Weight& weight, const Tensor& bias) {
  PAGODA_CHECK(weight.defined() && weight.rows % 2 == 0,
               "[gated_linear] weight: expected the rows of gate and up");
  PAGODA_CHECK(x.shape().rank() == 2 && x.extent(1) == weight.cols && x.stride(1) == 1,
               fmt::format("[gated_linear] x: expected [tokens, {}], got {}", weight.cols,
                           to_string(x.shape())));
  PAGODA_CHECK(
      !bias.defined() || (bias.dtype() == DType::kFloat32 && bias.shape() == Shape{weight.rows}),
      fmt::format("[gated_linear] bias: expected {} float32, got {} {}", weight.rows,
                  to_string(bias.shape()), dtype_name(bias.dtype())));
  const OpTimer timer(exec, [&] {
    return OpCall{.op = "gated_linear",
                  .format = weight.format,
                  .rows = weight.rows,
                  .cols = weight.cols,
                  .read_bytes = static_cast<double>(weight.packed->num_bytes()) + bytes_of(x),
                  .products = static_cast<double>(x.extent(0)) * static_cast<double>(weight.rows) *
                              static_cast<double>(weight.cols)};
  });
  static constexpr Bodies<decltype(reference::gated_linear)> kBodies{
      reference::gated_linear, cpu::gated_linear, mlx::gated_linear, cuda::gated_linear};
  return kBodies.of(exec)(exec, x, weight, bias);
}

}  // namespace pagoda
