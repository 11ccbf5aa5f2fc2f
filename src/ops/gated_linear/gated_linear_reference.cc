#include "ops/gated_linear/gated_linear.h"

namespace pagoda::reference {

Tensor gated_linear(Exec& exec, const Tensor& x, const Weight& weight,
                    const GatedLinearArgs& args) {
  return reference::glu(exec, reference::linear(exec, x, weight, {.bias = args.bias}),
                        {args.activation});
}

}  // namespace pagoda::reference
