#include "ops/rope/rope.h"

#include <cmath>

#include "backend/cpu/cpu_exec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rope/rope_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// cosines, sines  [half]; x, out  [2 * half]. Products and sums are not fused, so that the rest of
// a row is the same in scalars.
void rotate_halves(const float* x, const float* cosines, const float* sines, std::int64_t half,
                   float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + half + i);
    const auto c = hn::LoadU(d, cosines + i), s = hn::LoadU(d, sines + i);
    hn::StoreU(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), d, out + i);
    hn::StoreU(hn::Add(hn::Mul(b, c), hn::Mul(a, s)), d, out + half + i);
  }
  for (; i < half; ++i) {
    out[i] = x[i] * cosines[i] - x[half + i] * sines[i];
    out[half + i] = x[half + i] * cosines[i] + x[i] * sines[i];
  }
}

void rotate_adjacent(const float* x, const float* cosines, const float* sines, std::int64_t half,
                     float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    hn::Vec<decltype(d)> a, b;
    hn::LoadInterleaved2(d, x + 2 * i, a, b);
    const auto c = hn::LoadU(d, cosines + i), s = hn::LoadU(d, sines + i);
    hn::StoreInterleaved2(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)),
                          hn::Add(hn::Mul(b, c), hn::Mul(a, s)), d, out + 2 * i);
  }
  for (; i < half; ++i) {
    out[2 * i] = x[2 * i] * cosines[i] - x[2 * i + 1] * sines[i];
    out[2 * i + 1] = x[2 * i + 1] * cosines[i] + x[2 * i] * sines[i];
  }
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(rotate_halves);
HWY_EXPORT(rotate_adjacent);

namespace {

// In double, because a float32 angle of a hundred thousand is off by a hundredth.
void fill_angles(int position, std::span<const float> inv_freq, float* cosines, float* sines) {
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    const double angle = double{inv_freq[i]} * position;
    cosines[i] = static_cast<float>(std::cos(angle));
    sines[i] = static_cast<float>(std::sin(angle));
  }
}

}  // namespace

Tensor rope(Exec& exec, const Tensor& x, const Tensor& positions, const Tensor& inv_freq,
            const RopeArgs& args) {
  const std::int64_t tokens = x.extent(0), heads = x.extent(1), head_dim = x.extent(2);
  const std::int64_t half = head_dim / 2;
  Tensor out = exec.allocate(DType::kFloat32, x.shape());
  const Tensor angles = exec.allocate(DType::kFloat32, {tokens, 2, half});  // cosines, sines
  const auto rotate = args.style == RopeStyle::kHalves ? HWY_DYNAMIC_DISPATCH(rotate_halves)
                                                       : HWY_DYNAMIC_DISPATCH(rotate_adjacent);
  const float* from = x.data<float>();
  float* to = out.data<float>();
  const std::int32_t* at = positions.data<std::int32_t>();
  const std::span<const float> frequencies = inv_freq.span<float>();
  pool_of(exec).parallel_for(tokens, 4, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      float* cosines = angles.data<float>() + t * 2 * half;
      fill_angles(at[t], frequencies, cosines, cosines + half);
      for (std::int64_t h = 0; h < heads; ++h) {
        rotate(from + t * x.stride(0) + h * x.stride(1), cosines, cosines + half, half,
               to + (t * heads + h) * head_dim);
      }
    }
  });
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
