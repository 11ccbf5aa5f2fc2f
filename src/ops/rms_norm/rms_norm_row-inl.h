// One row of rms_norm, for each target of the cpu backend; rms_norm and add_rms_norm share it.
#if defined(PAGODA_RMS_NORM_ROW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_RMS_NORM_ROW_INL_H
#undef PAGODA_RMS_NORM_ROW_INL_H
#else
#define PAGODA_RMS_NORM_ROW_INL_H
#endif

#include <cmath>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Adds up the squares of whole vectors in four sums, then the rest. The order depends on dim alone.
inline float sum_of_squares(const float* x, std::int64_t dim) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
  const auto add = [&](auto& sum, const float* at) {
    const auto v = hn::LoadU(d, at);
    sum = hn::MulAdd(v, v, sum);
  };
  std::int64_t i = 0;
  for (; i + 4 * lanes <= dim; i += 4 * lanes) {
    add(sum0, x + i);
    add(sum1, x + i + lanes);
    add(sum2, x + i + 2 * lanes);
    add(sum3, x + i + 3 * lanes);
  }
  for (; i + lanes <= dim; i += lanes) add(sum0, x + i);
  const auto sum = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < dim; ++i) total += x[i] * x[i];
  return total;
}

inline void rms_norm_row(const float* x, const float* gain, std::int64_t dim, float eps,
                         float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const float mean = sum_of_squares(x, dim) / static_cast<float>(dim);
  const float inverse = 1.0f / std::sqrt(mean + eps);
  std::int64_t i = 0;
  for (; i + lanes <= dim; i += lanes) {
    const auto scaled = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, inverse));
    hn::StoreU(hn::Mul(scaled, hn::LoadU(d, gain + i)), d, out + i);
  }
  for (; i < dim; ++i) out[i] = x[i] * inverse * gain[i];
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
