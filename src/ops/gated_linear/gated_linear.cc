#include "ops/gated_linear/gated_linear.h"

namespace pagoda {

Tensor gated_linear(Exec& exec, const Tensor& x, const Weight& weight,
                    const GatedLinearArgs& args) {
  PAGODA_CHECK(weight.defined() && weight.rows % 2 == 0,
               "[gated_linear] weight: expected the rows of gate and up");
  check_product("gated_linear", x, weight, args.bias);
  const OpTimer timer(exec, [&] { return product_call("gated_linear", x, weight); });
  static constexpr Bodies<decltype(reference::gated_linear)> kBodies{
      reference::gated_linear, cpu::gated_linear, gpu::gated_linear};
  return kBodies.of(exec)(exec, x, weight, args);
}

}  // namespace pagoda
