#include <cmath>

#include "ops/rope/rope.h"

namespace pagoda::reference {

Tensor rope(Exec& exec, const Tensor& x, const Tensor& positions, const Tensor& inv_freq,
            const RopeArgs& args) {
  const std::int64_t heads = x.extent(1), head_dim = x.extent(2), half = head_dim / 2;
  const bool halves = args.style == RopeStyle::kHalves;
  Tensor out = exec.allocate(DType::kFloat32, x.shape());
  float* to = out.data<float>();
  for (std::int64_t t = 0; t < x.extent(0); ++t) {
    const int position = positions.data<std::int32_t>()[t];
    for (std::int64_t h = 0; h < heads; ++h, to += head_dim) {
      const float* from = x.data<float>() + t * x.stride(0) + h * x.stride(1);
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle = double{inv_freq.data<float>()[i]} * position;
        const double cosine = std::cos(angle), sine = std::sin(angle);
        const std::int64_t a = halves ? i : 2 * i;
        const std::int64_t b = halves ? i + half : 2 * i + 1;
        to[a] = static_cast<float>(from[a] * cosine - from[b] * sine);
        to[b] = static_cast<float>(from[b] * cosine + from[a] * sine);
      }
    }
  }
  return out;
}

}  // namespace pagoda::reference
