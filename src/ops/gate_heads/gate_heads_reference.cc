#include <algorithm>
#include <cmath>

#include "ops/gate_heads/gate_heads.h"

namespace pagoda::reference {
namespace {

double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}

}  // namespace

Tensor gate_heads(Exec& exec, const Tensor& x, const Tensor& gate) {
  Tensor out = exec.allocate(DType::kFloat32, x.shape());
  const std::int64_t width = x.extent(1) / gate.extent(1);
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    const double factor = softplus(gate.data<float>()[i / width]);
    out.data<float>()[i] = static_cast<float>(factor * x.data<float>()[i]);
  }
  return out;
}

}  // namespace pagoda::reference
