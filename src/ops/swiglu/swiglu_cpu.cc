#include "ops/swiglu/swiglu.h"

#include <algorithm>

#include "backend/cpu/cpu_exec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/swiglu/swiglu_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

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

void swiglu_row(const float* gate, const float* up, std::int64_t dim, float* out) {
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

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(swiglu_row);

Tensor swiglu(Exec& exec, const Tensor& gate_up) {
  const std::int64_t tokens = gate_up.extent(0), dim = gate_up.extent(1) / 2;
  Tensor out = exec.allocate(DType::kFloat32, {tokens, dim});
  const float* from = gate_up.data<float>();
  float* to = out.data<float>();
  const auto swiglu_row = HWY_DYNAMIC_DISPATCH(swiglu_row);
  pool_of(exec).parallel_for(tokens, 4, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      const float* gate = from + t * 2 * dim;
      swiglu_row(gate, gate + dim, dim, to + t * dim);
    }
  });
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
