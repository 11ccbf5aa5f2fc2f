#include "ops/rope/rope_cpu.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_exec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rope/rope_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/rope/angle_factor.h"
#include "ops/rope/rope_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

void rotate_halves(const float* x, const float* cosines, const float* sines, std::int64_t half,
                   float* out) {
  rotate_halves_row(x, cosines, sines, half, out);
}

void rotate_adjacent(const float* x, const float* cosines, const float* sines, std::int64_t half,
                     float* out) {
  rotate_adjacent_row(x, cosines, sines, half, out);
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(rotate_halves);
HWY_EXPORT(rotate_adjacent);

namespace {

// A token's cosines and sines take about a microsecond: four tokens are worth a fork.
constexpr std::int64_t kAnglesGrain = 4;
// Elements worth a fork, about two microseconds of one core.
constexpr std::int64_t kForkElements = 16384;

}  // namespace

Tensor rope_angles(Exec& exec, const Tensor& positions, const Tensor& inv_freq,
                   const RopeAnglesArgs& args) {
  const std::int64_t tokens = positions.extent(0), half = inv_freq.extent(0);
  Tensor out = exec.allocate(DType::kFloat32, {tokens, 2, half});
  const std::int32_t* at = positions.data<std::int32_t>();
  const float* frequencies = inv_freq.data<float>();
  float* to = out.data<float>();
  pool_of(exec).parallel_for(tokens, kAnglesGrain, [=](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      float* cosines = to + t * 2 * half;
      const double factor = factor_at(at[t], args);
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle = double{frequencies[i]} * at[t];
        cosines[i] = static_cast<float>(std::cos(angle) * factor);
        cosines[half + i] = static_cast<float>(std::sin(angle) * factor);
      }
    }
  });
  return out;
}

void rope_tokens(const Tensor& x, const Tensor& angles, const RopeArgs& args, std::int64_t begin,
                 std::int64_t end, const Tensor& out) {
  const std::int64_t heads = x.extent(1), head_dim = x.extent(2), half = angles.extent(2);
  const auto rotate = args.style == RopeStyle::kHalves ? HWY_DYNAMIC_DISPATCH(rotate_halves)
                                                       : HWY_DYNAMIC_DISPATCH(rotate_adjacent);
  for (std::int64_t t = begin; t < end; ++t) {
    const float* cosines = angles.data<float>() + t * 2 * half;
    for (std::int64_t h = 0; h < heads; ++h) {
      const float* head = x.data<float>() + t * x.stride(0) + h * x.stride(1);
      float* rotated = out.data<float>() + (t * heads + h) * head_dim;
      rotate(head, cosines, cosines + half, half, rotated);
      std::copy(head + 2 * half, head + head_dim, rotated + 2 * half);
    }
  }
}

Tensor rope(Exec& exec, const Tensor& x, const Tensor& angles, const RopeArgs& args) {
  Tensor out = exec.allocate(DType::kFloat32, x.shape());
  const std::int64_t width = x.extent(1) * x.extent(2);
  const std::int64_t grain = std::max<std::int64_t>(kForkElements / width, 1);
  pool_of(exec).parallel_for(x.extent(0), grain, [&](std::int64_t begin, std::int64_t end, int) {
    rope_tokens(x, angles, args, begin, end, out);
  });
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
