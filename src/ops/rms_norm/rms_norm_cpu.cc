#include "ops/rms_norm/rms_norm.h"

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

Tensor rms_norm(Exec& exec, const Tensor& x, const Tensor& weight, const RmsNormArgs& args) {
  const bool has_heads = x.shape().rank() == 3;
  const std::int64_t heads = has_heads ? x.extent(1) : 1;
  const std::int64_t head_stride = has_heads ? x.stride(1) : 0;
  const std::int64_t dim = x.extent(-1);
  Tensor out = exec.allocate(DType::kFloat32, x.shape());
  float* to = out.data<float>();
  const float* from = x.data<float>();
  const float* gain = weight.data<float>();
  const auto norm_row = HWY_DYNAMIC_DISPATCH(norm_row);
  // 16 rows of a small model take a few microseconds, what a fork costs.
  pool_of(exec).parallel_for(x.extent(0), 16, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t h = 0; h < heads; ++h) {
        norm_row(from + t * x.stride(0) + h * head_stride, gain, dim, args.eps,
                 to + (t * heads + h) * dim);
      }
    }
  });
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
