#include <cmath>
#include <numbers>

#include "ops/glu/glu.h"

namespace pagoda::reference {

namespace {

double gated(double gate, double up, const GluArgs& args) {
  switch (args.activation) {
    case Activation::kSilu:
      return gate / (1.0 + std::exp(-gate)) * up;
    case Activation::kGeluTanh: {
      const double cubic = 0.044715 * gate * gate * gate;
      return gate / 2 * (1.0 + std::tanh(std::sqrt(2 / std::numbers::pi) * (gate + cubic))) * up;
    }
    case Activation::kSwigluOai: {
      const double limit = args.limit;
      const double below = gate > limit ? limit : gate;
      const double between = up > limit ? limit : up < -limit ? -limit : up;
      return below / (1.0 + std::exp(-args.alpha * below)) * (between + 1);
    }
  }
  return 0;
}

}  // namespace

Tensor glu(Exec& exec, const Tensor& gate, const Tensor& up, const GluArgs& args) {
  const std::int64_t tokens = gate.extent(0), dim = gate.extent(1);
  Tensor out = exec.allocate(DType::kFloat32, gate.shape());
  for (std::int64_t t = 0; t < tokens; ++t) {
    const float* gates = gate.data<float>() + t * gate.stride(0);
    const float* ups = up.data<float>() + t * up.stride(0);
    for (std::int64_t i = 0; i < dim; ++i) {
      out.data<float>()[t * dim + i] = static_cast<float>(gated(gates[i], ups[i], args));
    }
  }
  return out;
}

}  // namespace pagoda::reference
