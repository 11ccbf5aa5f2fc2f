#include "ops/rms_norm_rope/rms_norm_rope_cpu.h"

#include <algorithm>

#include "backend/cpu/cpu_exec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rms_norm_rope/rms_norm_rope_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/rms_norm/rms_norm_row-inl.h"
#include "ops/rope/rope_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

constexpr std::int64_t kLineFloats = 16;

// Norms and rotates tokens [begin, end) of x. Each head is rotated while its norm is in the
// first-level cache.
void norm_and_rotate(const Tensor& x, const float* gain, const Tensor& angles,
                     const RmsNormRopeArgs& args, std::int64_t begin, std::int64_t end,
                     float* out) {
  const std::int64_t heads = x.extent(1), head_dim = x.extent(2), half = angles.extent(2);
  const auto rotate =
      args.rope.style == RopeStyle::kHalves ? rotate_halves_row : rotate_adjacent_row;
  for (std::int64_t t = begin; t < end; ++t) {
    const float* from = x.data<float>() + t * x.stride(0);
    const float* cosines = angles.data<float>() + t * 2 * half;
    float* to = out + t * heads * head_dim;
    for (std::int64_t h = 0; h < heads; ++h, from += x.stride(1), to += head_dim) {
      // Prefetches the next token's head: in a joined product tokens are too far apart for the
      // hardware to prefetch.
      for (std::int64_t i = 0; i < head_dim; i += kLineFloats) {
        __builtin_prefetch(from + x.stride(0) + i);
      }
      rms_norm_row(from, gain, head_dim, args.norm.eps, to);
      rotate(to, cosines, cosines + half, half, to);
    }
  }
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(norm_and_rotate);

namespace {

// Elements worth a fork, about two microseconds of one core.
constexpr std::int64_t kForkElements = 8192;

}  // namespace

void rms_norm_rope_tokens(const Tensor& x, const Tensor& weight, const Tensor& angles,
                          const RmsNormRopeArgs& args, std::int64_t begin, std::int64_t end,
                          const Tensor& out) {
  HWY_DYNAMIC_DISPATCH(norm_and_rotate)
  (x, weight.data<float>(), angles, args, begin, end, out.data<float>());
}

Tensor rms_norm_rope(Exec& exec, const Tensor& x, const Tensor& weight, const Tensor& angles,
                     const RmsNormRopeArgs& args) {
  Tensor out = exec.allocate(DType::kFloat32, x.shape());
  const std::int64_t width = x.extent(1) * x.extent(2);
  const std::int64_t grain = std::max<std::int64_t>(kForkElements / width, 1);
  pool_of(exec).parallel_for(x.extent(0), grain, [&](std::int64_t begin, std::int64_t end, int) {
    rms_norm_rope_tokens(x, weight, angles, args, begin, end, out);
  });
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
