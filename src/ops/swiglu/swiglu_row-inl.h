// swiglu of one row, for each target.
#if defined(PAGODA_SWIGLU_ROW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_SWIGLU_ROW_INL_H
#undef PAGODA_SWIGLU_ROW_INL_H
#else
#define PAGODA_SWIGLU_ROW_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V gated(V gate, V up) {
  const D d;
  // Beyond 88 the exponential overflows; silu is already zero to float32's last bit there.
  const V exponential = hn::Exp(d, hn::Min(hn::Neg(gate), hn::Set(d, 88.0f)));
  return hn::Mul(hn::Div(gate, hn::Add(hn::Set(d, 1.0f), exponential)), up);
}

// gate, up, out  [dim]; each element the same bits wherever it stands.
inline void swiglu_row(const float* gate, const float* up, std::int64_t dim, float* out) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= dim; i += lanes) {
    hn::StoreU(gated(hn::LoadU(d, gate + i), hn::LoadU(d, up + i)), d, out + i);
  }
  if (i == dim) return;
  HWY_ALIGN float gates[hn::MaxLanes(d)] = {};
  HWY_ALIGN float ups[hn::MaxLanes(d)] = {};
  std::copy(gate + i, gate + dim, gates);
  std::copy(up + i, up + dim, ups);
  hn::Store(gated(hn::Load(d, gates), hn::Load(d, ups)), d, gates);
  std::copy(gates, gates + (dim - i), out + i);
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
