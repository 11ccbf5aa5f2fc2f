#include "ops/rms_norm/rms_norm_cpu.h"

#include <algorithm>

#include "backend/cpu/cpu_exec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rms_norm/rms_norm_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/rms_norm/rms_norm_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

void norm_row(const float* x, const float* gain, std::int64_t dim, float eps, float* out) {
  rms_norm_row(x, gain, dim, eps, out);
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(norm_row);

namespace {

// Elements worth a fork, about two microseconds of one core.
constexpr std::int64_t kForkElements = 4096;

}  // namespace

void rms_norm_tokens(const Tensor& x, const Tensor& weight, const RmsNormArgs& args,
                     std::int64_t begin, std::int64_t end, const Tensor& out) {
  const bool has_heads = x.shape().rank() == 3;
  const std::int64_t heads = has_heads ? x.extent(1) : 1;
  const std::int64_t head_stride = has_heads ? x.stride(1) : 0;
  const std::int64_t dim = x.extent(-1);
  const auto norm_row = HWY_DYNAMIC_DISPATCH(norm_row);
  for (std::int64_t t = begin; t < end; ++t) {
    for (std::int64_t h = 0; h < heads; ++h) {
      norm_row(x.data<float>() + t * x.stride(0) + h * head_stride, weight.data<float>(), dim,
               args.eps, out.data<float>() + (t * heads + h) * dim);
    }
  }
}

Tensor rms_norm(Exec& exec, const Tensor& x, const Tensor& weight, const RmsNormArgs& args) {
  Tensor out = exec.allocate(DType::kFloat32, x.shape());
  const std::int64_t width = x.num_elements() / std::max<std::int64_t>(x.extent(0), 1);
  const std::int64_t grain = std::max<std::int64_t>(kForkElements / width, 1);
  pool_of(exec).parallel_for(x.extent(0), grain, [&](std::int64_t begin, std::int64_t end, int) {
    rms_norm_tokens(x, weight, args, begin, end, out);
  });
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
