#include "ops/gated_linear/gated_linear.h"

namespace pagoda::reference {

Tensor gated_linear(Exec& exec, const Tensor& x, const Weight& weight, const Tensor& bias) {
  return reference::swiglu(exec, reference::linear(exec, x, weight, {.bias = bias}));
}

}  // namespace pagoda::reference
