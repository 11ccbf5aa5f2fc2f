// glu of one row, compiled for each target. The activation of x is x / (1 + e^-y), where y is
//
//   silu  x
//   gelu  2 sqrt(2 / pi) (x + 0.044715 x^3), because (1 + tanh(z)) / 2 is 1 / (1 + e^-2z)
//   swiglu_oai  alpha x
#if defined(PAGODA_GLU_ROW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_GLU_ROW_INL_H
#undef PAGODA_GLU_ROW_INL_H
#else
#define PAGODA_GLU_ROW_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/glu/glu.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Returns e^x for x in [-87, 88], off by at most 1.2 units in the last place. It is 2^n e^r for a
// whole n: adding 1.5 * 2^23 rounds x / ln 2 to n and leaves n in the low bits. e^r is the
// polynomial of Cephes (Moshier's expf). This is 1.7 times as fast as hn::Exp, which takes all x,
// and as close in silu (1.3e-7).
HWY_INLINE V exponential(V x) {
  const D d;
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, 12582912.0f);
  const V rounded = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const V n = hn::Sub(rounded, magic);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693145752f), x);  // ln 2, its upper bits
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6f), r);
  V p = hn::MulAdd(hn::Set(d, 1.9875691500e-4f), r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, hn::Set(d, 1.0f)));
  const auto power = hn::ShiftLeft<23>(hn::BitCast(di, rounded));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), power));
}

// Returns the y of a gate (at the top of this file).
template <Activation kActivation>
HWY_INLINE V exponent_of(V gate, const GluArgs& args) {
  const D d;
  if constexpr (kActivation == Activation::kSilu) return gate;
  if constexpr (kActivation == Activation::kSwigluOai) return hn::Mul(gate, hn::Set(d, args.alpha));
  const V cubic = hn::Mul(hn::Mul(gate, gate), hn::Set(d, 0.0713548163f));
  return hn::Mul(gate, hn::Add(hn::Set(d, 1.59576912f), cubic));
}

// Returns x, or the limit if x is above it. NaN stays NaN.
HWY_INLINE V cut_off(V x, V limit) {
  return hn::IfThenElse(hn::Gt(x, limit), limit, x);
}

template <Activation kActivation>
HWY_INLINE V gated(V gate, V up, const GluArgs& args) {
  const D d;
  if constexpr (kActivation == Activation::kSwigluOai) {
    const V limit = hn::Set(d, args.limit);
    gate = cut_off(gate, limit);
    up = hn::Neg(cut_off(hn::Neg(cut_off(up, limit)), limit));
    up = hn::Add(up, hn::Set(d, 1.0f));
  }
  // If the exponent is cut off, the activation is zero, or the gate, within float32's last bit.
  const V x = hn::Max(hn::Min(hn::Neg(exponent_of<kActivation>(gate, args)), hn::Set(d, 88.0f)),
                      hn::Set(d, -87.0f));
  return hn::Mul(hn::Div(gate, hn::Add(hn::Set(d, 1.0f), exponential(x))), up);
}

// Computes a row. gate, up, out [dim]. The bits of an element do not depend on its place.
template <Activation kActivation>
inline void glu_row_of(const float* gate, const float* up, std::int64_t dim, const GluArgs& args,
                       float* out) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= dim; i += lanes) {
    hn::StoreU(gated<kActivation>(hn::LoadU(d, gate + i), hn::LoadU(d, up + i), args), d, out + i);
  }
  if (i == dim) return;
  HWY_ALIGN float gates[hn::MaxLanes(d)] = {};
  HWY_ALIGN float ups[hn::MaxLanes(d)] = {};
  std::copy(gate + i, gate + dim, gates);
  std::copy(up + i, up + dim, ups);
  hn::Store(gated<kActivation>(hn::Load(d, gates), hn::Load(d, ups), args), d, gates);
  std::copy(gates, gates + (dim - i), out + i);
}

inline void glu_row(const float* gate, const float* up, std::int64_t dim, const GluArgs& args,
                    float* out) {
  switch (args.activation) {
    case Activation::kSilu:
      return glu_row_of<Activation::kSilu>(gate, up, dim, args, out);
    case Activation::kGeluTanh:
      return glu_row_of<Activation::kGeluTanh>(gate, up, dim, args, out);
    case Activation::kSwigluOai:
      return glu_row_of<Activation::kSwigluOai>(gate, up, dim, args, out);
  }
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
