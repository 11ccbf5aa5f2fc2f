#include "ops/gated_linear/gated_linear.h"

namespace pagoda::reference {

Tensor gated_linear(Exec& exec, const Tensor& x, const Weight& weight,
                    const GatedLinearArgs& args) {
  const auto [gate, up] = halves_of(reference::linear(exec, x, weight, {.bias = args.bias}));
  return reference::glu(exec, gate, up, args.glu);
}

}  // namespace pagoda::reference
