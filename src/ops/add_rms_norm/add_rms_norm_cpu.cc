#include "ops/add_rms_norm/add_rms_norm.h"

#include <algorithm>

#include "backend/cpu/cpu_exec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/add_rms_norm/add_rms_norm_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/rms_norm/rms_norm_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

// Computes sum = sum_factor * (x + factor * delta); sum may alias delta. Products and sums are not
// fused, so that the scalar loop gives the vectors' bits, and factors of 1 change no bit.
void add_row(const float* x, const float* delta, float factor, float sum_factor, std::int64_t dim,
             float* sum) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= dim; i += lanes) {
    const auto added = hn::Mul(hn::LoadU(d, delta + i), hn::Set(d, factor));
    const auto both = hn::Add(hn::LoadU(d, x + i), added);
    hn::StoreU(hn::Mul(both, hn::Set(d, sum_factor)), d, sum + i);
  }
  for (; i < dim; ++i) sum[i] = (x[i] + delta[i] * factor) * sum_factor;
}

void norm_sum_row(const float* sum, const float* gain, std::int64_t dim, float eps, float* out) {
  rms_norm_row(sum, gain, dim, eps, out);
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(add_row);
HWY_EXPORT(norm_sum_row);

namespace {

// The fewest elements worth a fork: some microseconds of one core, if other cores wrote them.
constexpr std::int64_t kForkElements = 4096;

}  // namespace

AddRmsNormResult add_rms_norm(Exec& exec, const Tensor& x, const Tensor& delta,
                              const Tensor& weight, const AddRmsNormArgs& args) {
  const std::int64_t dim = x.extent(1);
  Tensor sum = exec.allocate(DType::kFloat32, x.shape());
  Tensor normed = weight.defined() ? exec.allocate(DType::kFloat32, x.shape()) : sum;
  const float* a = x.data<float>();
  const float* b = delta.data<float>();
  const float* gain = weight.defined() ? weight.data<float>() : nullptr;
  const float* delta_gain = args.delta_norm.defined() ? args.delta_norm.data<float>() : nullptr;
  const auto add_row = HWY_DYNAMIC_DISPATCH(add_row);
  const auto norm_row = HWY_DYNAMIC_DISPATCH(norm_sum_row);
  const std::int64_t grain = std::max<std::int64_t>(kForkElements / dim, 1);
  pool_of(exec).parallel_for(x.extent(0), grain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      float* row = sum.data<float>() + t * dim;
      const float* added = b + t * dim;
      if (delta_gain != nullptr) {
        norm_row(added, delta_gain, dim, args.eps, row);
        added = row;
      }
      add_row(a + t * dim, added, args.delta_factor, args.sum_factor, dim, row);
      if (gain != nullptr) norm_row(row, gain, dim, args.eps, normed.data<float>() + t * dim);
    }
  });
  return {std::move(sum), std::move(normed)};
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
