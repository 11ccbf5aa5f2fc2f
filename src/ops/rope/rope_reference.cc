#include <algorithm>
#include <cmath>

#include "ops/rope/angle_factor.h"
#include "ops/rope/rope.h"

namespace pagoda::reference {

Tensor rope_angles(Exec& exec, const Tensor& positions, const Tensor& inv_freq,
                   const RopeAnglesArgs& args) {
  const std::int64_t half = inv_freq.extent(0);
  Tensor out = exec.allocate(DType::kFloat32, {positions.extent(0), 2, half});
  float* to = out.data<float>();
  for (const std::int32_t position : positions.span<std::int32_t>()) {
    const double factor = factor_at(position, args);
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = double{inv_freq.data<float>()[i]} * position;
      to[i] = static_cast<float>(std::cos(angle) * factor);
      to[half + i] = static_cast<float>(std::sin(angle) * factor);
    }
    to += 2 * half;
  }
  return out;
}

Tensor rope(Exec& exec, const Tensor& x, const Tensor& angles, const RopeArgs& args) {
  const std::int64_t heads = x.extent(1), head_dim = x.extent(2), half = angles.extent(2);
  const bool halves = args.style == RopeStyle::kHalves;
  Tensor out = exec.allocate(DType::kFloat32, x.shape());
  float* to = out.data<float>();
  for (std::int64_t t = 0; t < x.extent(0); ++t) {
    const float* cosines = angles.data<float>() + t * 2 * half;
    const float* sines = cosines + half;
    for (std::int64_t h = 0; h < heads; ++h, to += head_dim) {
      const float* from = x.data<float>() + t * x.stride(0) + h * x.stride(1);
      std::copy(from + 2 * half, from + head_dim, to + 2 * half);
      for (std::int64_t i = 0; i < half; ++i) {
        const std::int64_t a = halves ? i : 2 * i;
        const std::int64_t b = halves ? i + half : 2 * i + 1;
        to[a] = static_cast<float>(double{from[a]} * cosines[i] - double{from[b]} * sines[i]);
        to[b] = static_cast<float>(double{from[b]} * cosines[i] + double{from[a]} * sines[i]);
      }
    }
  }
  return out;
}

}  // namespace pagoda::reference
