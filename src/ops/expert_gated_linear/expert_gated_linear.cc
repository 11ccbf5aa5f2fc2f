#include "ops/expert_gated_linear/expert_gated_linear.h"

namespace pagoda {

Tensor expert_gated_linear(Exec& exec, const Tensor& x, const ExpertWeight& weight,
                           const Routing& routing, const ExpertGatedLinearArgs& args) {
  check_expert_product("expert_gated_linear", x, weight, routing, args.bias);
  PAGODA_CHECK(weight.rows() % 2 == 0 && x.extent(0) == routing.places.extent(0),
               "[expert_gated_linear] expected gates and up parts, and a row for each token");
  const OpTimer timer(
      exec, [&] { return expert_product_call("expert_gated_linear", exec, x, weight, routing); });
  static constexpr Bodies<decltype(reference::expert_gated_linear)> kBodies{
      reference::expert_gated_linear, cpu::expert_gated_linear, gpu::expert_gated_linear};
  return kBodies.of(exec)(exec, x, weight, routing, args);
}

}  // namespace pagoda
