#include "ops/linear/linear.h"

#include <fmt/format.h>

namespace pagoda {

Tensor linear(Exec& exec, const Tensor& x, const Weight& weight, const LinearArgs& args) {
  PAGODA_CHECK(weight.defined(), "[linear] weight: expected a packed matrix, got none");
  PAGODA_CHECK(
      x.shape().rank() == 2 && x.extent(1) == weight.cols && x.stride(1) == 1,
      fmt::format("[linear] x: expected [tokens, {}], got {}", weight.cols, to_string(x.shape())));
  PAGODA_CHECK(!args.bias.defined() || (args.bias.dtype() == DType::kFloat32 &&
                                        args.bias.shape() == Shape{weight.rows}),
               fmt::format("[linear] bias: expected {} float32, got {} {}", weight.rows,
                           to_string(args.bias.shape()), dtype_name(args.bias.dtype())));
  const OpTimer timer(exec, [&] {
    return OpCall{.op = "linear",
                  .format = weight.format,
                  .rows = weight.rows,
                  .cols = weight.cols,
                  .read_bytes = static_cast<double>(weight.packed->num_bytes()) + bytes_of(x),
                  .products = static_cast<double>(x.extent(0)) * static_cast<double>(weight.rows) *
                              static_cast<double>(weight.cols)};
  });
  static constexpr Bodies<decltype(reference::linear)> kBodies{reference::linear, cpu::linear,
                                                               mlx::linear, cuda::linear};
  return kBodies.of(exec)(exec, x, weight, args);
}

}  // namespace pagoda
