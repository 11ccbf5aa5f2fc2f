#include <cmath>
#include <numbers>

#include "ops/glu/glu.h"

namespace pagoda::reference {

namespace {

double activated(double x, Activation activation) {
  if (activation == Activation::kSilu) return x / (1.0 + std::exp(-x));
  return x / 2 * (1.0 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

}  // namespace

Tensor glu(Exec& exec, const Tensor& gate_up, const GluArgs& args) {
  const std::int64_t tokens = gate_up.extent(0), dim = gate_up.extent(1) / 2;
  Tensor out = exec.allocate(DType::kFloat32, {tokens, dim});
  for (std::int64_t t = 0; t < tokens; ++t) {
    const float* gate = gate_up.data<float>() + t * 2 * dim;
    const float* up = gate + dim;
    for (std::int64_t i = 0; i < dim; ++i) {
      out.data<float>()[t * dim + i] =
          static_cast<float>(activated(gate[i], args.activation) * up[i]);
    }
  }
  return out;
}

}  // namespace pagoda::reference
