#include <cmath>

#include "ops/swiglu/swiglu.h"

namespace pagoda::reference {

Tensor swiglu(Exec& exec, const Tensor& gate_up) {
  const std::int64_t tokens = gate_up.extent(0), dim = gate_up.extent(1) / 2;
  Tensor out = exec.allocate(DType::kFloat32, {tokens, dim});
  for (std::int64_t t = 0; t < tokens; ++t) {
    const float* gate = gate_up.data<float>() + t * 2 * dim;
    const float* up = gate + dim;
    for (std::int64_t i = 0; i < dim; ++i) {
      const double silu = gate[i] / (1.0 + std::exp(-double{gate[i]}));
      out.data<float>()[t * dim + i] = static_cast<float>(silu * up[i]);
    }
  }
  return out;
}

}  // namespace pagoda::reference
