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

Tensor glu(Exec& exec, const Tensor& gate, const Tensor& up, const GluArgs& args) {
  const std::int64_t tokens = gate.extent(0), dim = gate.extent(1);
  Tensor out = exec.allocate(DType::kFloat32, gate.shape());
  for (std::int64_t t = 0; t < tokens; ++t) {
    const float* gates = gate.data<float>() + t * gate.stride(0);
    const float* ups = up.data<float>() + t * up.stride(0);
    for (std::int64_t i = 0; i < dim; ++i) {
      out.data<float>()[t * dim + i] =
          static_cast<float>(activated(gates[i], args.activation) * ups[i]);
    }
  }
  return out;
}

}  // namespace pagoda::reference
