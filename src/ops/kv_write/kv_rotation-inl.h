// rotate_kv_entry() of quant/kv_rotation.h in vectors, compiled for each target: the same sums in
// the same order, so the same bits.
#if defined(PAGODA_KV_ROTATION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_KV_ROTATION_INL_H
#undef PAGODA_KV_ROTATION_INL_H
#else
#define PAGODA_KV_ROTATION_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "quant/kv_rotation.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace rotation {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr int kLanes = hn::MaxLanes(D());

// Returns a + b in the lane of each a, and a - b in the lane of its b, `half` lanes further on. The
// products with 1 and -1 are exact.
template <int half>
HWY_INLINE V butterfly(V x, V partners) {
  const D d;
  const hn::RebindToUnsigned<D> words;
  const auto is_second =
      hn::RebindMask(d, hn::TestBit(hn::Iota(words, 0), hn::Set(words, std::uint32_t{half})));
  return hn::MulAdd(x, hn::IfThenElse(is_second, hn::Set(d, -1.0f), hn::Set(d, 1.0f)), partners);
}

HWY_INLINE V rotate_lanes(V x, std::int64_t width) {
  const D d;
  if (width >= 2) x = butterfly<1>(x, hn::Reverse2(d, x));
  if (width >= 4) x = butterfly<2>(x, hn::Shuffle1032(x));
  if constexpr (kLanes >= 8) {
    if (width >= 8) x = butterfly<4>(x, hn::SwapAdjacentBlocks(x));
  }
  if constexpr (kLanes >= 16) {
    if (width >= 16) x = butterfly<8>(x, hn::ReverseBlocks(d, hn::SwapAdjacentBlocks(x)));
  }
  return x;
}

// Does the part of an entry's rotation that stays within 4 vectors. REQUIRES: a rotation's run is a
// multiple of them.
HWY_INLINE void rotate_four(float* entry) {
  const D d;
  V x[4], y[4];
  for (int i = 0; i < 4; ++i) x[i] = rotate_lanes(hn::LoadU(d, entry + i * kLanes), 4 * kLanes);
  for (int i = 0; i < 4; i += 2) {
    y[i] = hn::Add(x[i], x[i + 1]);
    y[i + 1] = hn::Sub(x[i], x[i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    hn::StoreU(hn::Add(y[i], y[i + 2]), d, entry + i * kLanes);
    hn::StoreU(hn::Sub(y[i], y[i + 2]), d, entry + (i + 2) * kLanes);
  }
}

}  // namespace rotation

// Returns the floats of an entry that is padded to whole vectors.
constexpr std::int64_t padded_entry(std::int64_t head_dim) {
  return (head_dim + 15) / 16 * 16;
}

// Rotates an entry [padded_entry(head_dim)] in place; values past head_dim become arbitrary.
HWY_INLINE void rotate_padded_entry(float* entry, std::int64_t head_dim) {
  namespace hn = hwy::HWY_NAMESPACE;
  using rotation::kLanes;
  const rotation::D d;
  const std::int64_t width = kv_rotation_width(head_dim);
  std::int64_t half = kLanes;
  if (width % (4 * kLanes) == 0) {
    for (std::int64_t i = 0; i < head_dim; i += 4 * kLanes) rotation::rotate_four(entry + i);
    half = 4 * kLanes;
  } else {
    for (std::int64_t i = 0; i < head_dim; i += kLanes)
      hn::StoreU(rotation::rotate_lanes(hn::LoadU(d, entry + i), width), d, entry + i);
  }
  for (; half < width; half *= 2) {
    for (std::int64_t run = 0; run < head_dim; run += 2 * half) {
      for (std::int64_t i = run; i < run + half; i += kLanes) {
        const auto a = hn::LoadU(d, entry + i), b = hn::LoadU(d, entry + i + half);
        hn::StoreU(hn::Add(a, b), d, entry + i);
        hn::StoreU(hn::Sub(a, b), d, entry + i + half);
      }
    }
  }
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
