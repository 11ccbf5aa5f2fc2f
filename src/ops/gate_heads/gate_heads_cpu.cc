#include <algorithm>

#include "backend/cpu/cpu_exec.h"
#include "ops/gate_heads/gate_heads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gate_heads/gate_heads_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;

// The gates of a row whose functions are kept at a time. A vector of any target fits.
constexpr std::int64_t kGatesAtOnce = 256;

HWY_INLINE hn::Vec<D> softplus(hn::Vec<D> x) {
  const D d;
  const auto small = hn::Exp(d, hn::Neg(hn::Abs(x)));
  return hn::Add(hn::Max(x, hn::Zero(d)), hn::Log1p(d, small));
}

HWY_INLINE void scale(const float* x, std::int64_t count, float factor, float* out) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto factors = hn::Set(d, factor);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), factors), d, out + i);
  }
  for (; i < count; ++i) out[i] = x[i] * factor;
}

// Gates a row of `num_gates` times `width` elements. The bits of a result do not depend on the
// element's place.
void gate_row(const float* x, const float* gate, std::int64_t num_gates, std::int64_t width,
              float* out) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float gates[kGatesAtOnce] = {};
  for (std::int64_t first = 0; first < num_gates; first += kGatesAtOnce) {
    const std::int64_t count = std::min(num_gates - first, kGatesAtOnce);
    std::copy(gate + first, gate + first + count, gates);
    for (std::int64_t i = 0; i < count; i += lanes) {
      hn::Store(softplus(hn::Load(d, gates + i)), d, gates + i);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (width == 1) {
        out[first + i] = x[first + i] * gates[i];
      } else {
        scale(x + (first + i) * width, width, gates[i], out + (first + i) * width);
      }
    }
  }
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(gate_row);

Tensor gate_heads(Exec& exec, const Tensor& x, const Tensor& gate) {
  const std::int64_t tokens = x.extent(0), dim = x.extent(1), num_gates = gate.extent(1);
  Tensor out = exec.allocate(DType::kFloat32, x.shape());
  const auto gate_row = HWY_DYNAMIC_DISPATCH(gate_row);
  pool_of(exec).parallel_for(tokens, 4, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      gate_row(x.data<float>() + t * dim, gate.data<float>() + t * num_gates, num_gates,
               dim / num_gates, out.data<float>() + t * dim);
    }
  });
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
