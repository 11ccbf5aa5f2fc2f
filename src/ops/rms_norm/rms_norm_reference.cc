#include <cmath>

#include "ops/rms_norm/rms_norm.h"

namespace pagoda::reference {

Tensor rms_norm(Exec& exec, const Tensor& x, const Tensor& weight, const RmsNormArgs& args) {
  const bool has_heads = x.shape().rank() == 3;
  const std::int64_t heads = has_heads ? x.extent(1) : 1;
  const std::int64_t head_stride = has_heads ? x.stride(1) : 0;
  const std::int64_t dim = x.extent(-1);
  Tensor out = exec.allocate(DType::kFloat32, x.shape());
  float* to = out.data<float>();
  const float* gain = weight.data<float>();
  for (std::int64_t row = 0; row < x.extent(0); ++row) {
    for (std::int64_t head = 0; head < heads; ++head, to += dim) {
      const float* from = x.data<float>() + row * x.stride(0) + head * head_stride;
      double squares = 0;
      for (std::int64_t i = 0; i < dim; ++i) squares += double{from[i]} * from[i];
      const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(dim) + args.eps);
      for (std::int64_t i = 0; i < dim; ++i) {
        to[i] = static_cast<float>(from[i] * inverse * gain[i]);
      }
    }
  }
  return out;
}

}  // namespace pagoda::reference
