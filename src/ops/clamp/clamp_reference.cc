#include <algorithm>

#include "ops/clamp/clamp.h"

namespace pagoda::reference {

Tensor clamp(Exec& exec, const Tensor& x, const ClampArgs& args) {
  Tensor out = exec.allocate(DType::kFloat32, x.shape());
  float* to = out.data<float>();
  for (std::int64_t row = 0; row < x.extent(0); ++row) {
    const float* from = x.data<float>() + row * x.stride(0);
    for (std::int64_t i = 0; i < x.extent(1); ++i) {
      *to++ = std::clamp(from[i], -args.limit, args.limit);
    }
  }
  return out;
}

}  // namespace pagoda::reference
