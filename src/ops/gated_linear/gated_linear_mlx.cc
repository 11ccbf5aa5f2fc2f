#include "ops/gated_linear/gated_linear.h"

namespace pagoda::mlx {

Tensor gated_linear(Exec& exec, const Tensor& x, const Weight& weight, const Tensor& bias) {
  return mlx::swiglu(exec, mlx::linear(exec, x, weight, {.bias = bias}));
}

}  // namespace pagoda::mlx
