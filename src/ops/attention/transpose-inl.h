// A tile of 32 keys as [head_dim, 32] float32, for each target.
#if defined(PAGODA_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_TRANSPOSE_INL_H
#undef PAGODA_TRANSPOSE_INL_H
#else
#define PAGODA_TRANSPOSE_INL_H
#endif

#include <cstdint>

#include "core/half.h"
#include "hwy/highway.h"
#include "ops/attention/attention_items.h"

// Loops over registers must vanish: an array that is indexed at run time lives in memory.
#undef PAGODA_UNROLL
#define PAGODA_UNROLL _Pragma("GCC unroll 16")

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr int kLanes = hn::MaxLanes(D());

// bfloat16 or float16 bits as float32.
template <typename T, class V16>
HWY_INLINE V widen_bits(V16 bits) {
  if constexpr (std::is_same_v<T, bf16>) {
    return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), bits)));
  } else {
    return hn::PromoteTo(D(), hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
  }
}

HWY_INLINE V load_wide(D d, const float* from) {
  return hn::LoadU(d, from);
}

template <typename T>
HWY_INLINE V load_wide(D, const T* from) {
  const hn::Rebind<std::uint16_t, D> d16;
  return widen_bits<T>(hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from)));
}

// Elements d to d + 3 of four keys, as columns.
HWY_INLINE void transpose_keys(const float* const* keys, std::int64_t d, float* transposed) {
  const hn::CappedTag<float, 4> d4;
  const hn::Repartition<double, decltype(d4)> d2;
  const auto a = hn::LoadU(d4, keys[0] + d), b = hn::LoadU(d4, keys[1] + d);
  const auto c = hn::LoadU(d4, keys[2] + d), e = hn::LoadU(d4, keys[3] + d);
  const auto ab_low = hn::BitCast(d2, hn::InterleaveLower(d4, a, b));
  const auto ab_high = hn::BitCast(d2, hn::InterleaveUpper(d4, a, b));
  const auto ce_low = hn::BitCast(d2, hn::InterleaveLower(d4, c, e));
  const auto ce_high = hn::BitCast(d2, hn::InterleaveUpper(d4, c, e));
  const auto store = [&](auto v, int i) {
    hn::StoreU(hn::BitCast(d4, v), d4, transposed + (d + i) * kTilePositions);
  };
  store(hn::InterleaveLower(d2, ab_low, ce_low), 0);
  store(hn::InterleaveUpper(d2, ab_low, ce_low), 1);
  store(hn::InterleaveLower(d2, ab_high, ce_high), 2);
  store(hn::InterleaveUpper(d2, ab_high, ce_high), 3);
}

// Sixteen-bit keys are transposed as they are and widened afterwards: half the shuffles. A vector
// has eight keys in each of its 128-bit blocks.
using D16 = hn::CappedTag<std::uint16_t, kLanes >= 8 ? 16 : 8>;
constexpr int kKeysAtOnce = hn::MaxLanes(D16());

template <typename T, class DKeys>
HWY_INLINE hn::Vec<DKeys> load_keys(DKeys keys16, const T* const* keys, std::int64_t d) {
  const hn::CappedTag<std::uint16_t, 8> d8;
  const auto low = hn::LoadU(d8, reinterpret_cast<const std::uint16_t*>(keys[0] + d));
  if constexpr (hn::MaxLanes(keys16) == 16) {
    const auto high = hn::LoadU(d8, reinterpret_cast<const std::uint16_t*>(keys[8] + d));
    return hn::Combine(keys16, high, low);
  } else {
    return low;
  }
}

template <typename T, class DKeys>
HWY_INLINE void store_wide(DKeys, hn::Vec<DKeys> keys, float* to) {
  if constexpr (hn::MaxLanes(DKeys()) == kLanes) {
    hn::StoreU(widen_bits<T>(keys), D(), to);
  } else {
    const hn::Half<DKeys> half;
    hn::StoreU(widen_bits<T>(hn::LowerHalf(half, keys)), D(), to);
    hn::StoreU(widen_bits<T>(hn::UpperHalf(half, keys)), D(), to + kLanes);
  }
}

// Elements d to d + 7 of kKeysAtOnce keys, as columns.
template <typename T>
HWY_INLINE void transpose_keys(const T* const* keys, std::int64_t d, float* transposed) {
  const D16 d16;
  const hn::Repartition<std::uint32_t, D16> d32;
  const hn::Repartition<std::uint64_t, D16> d64;
  // pairs[i]: keys 2 i and 2 i + 1 side by side; low: elements 0 to 3, high: 4 to 7.
  hn::Vec<decltype(d32)> low[4], high[4];
  PAGODA_UNROLL
  for (int i = 0; i < 4; ++i) {
    const auto a = load_keys(d16, keys + 2 * i, d), b = load_keys(d16, keys + 2 * i + 1, d);
    low[i] = hn::BitCast(d32, hn::InterleaveLower(d16, a, b));
    high[i] = hn::BitCast(d32, hn::InterleaveUpper(d16, a, b));
  }
  // Two elements of four keys, then one element of eight.
  const auto store_four = [&](const auto* pairs, std::int64_t at) {
    const auto first = hn::BitCast(d64, hn::InterleaveLower(d32, pairs[0], pairs[1]));
    const auto second = hn::BitCast(d64, hn::InterleaveUpper(d32, pairs[0], pairs[1]));
    const auto third = hn::BitCast(d64, hn::InterleaveLower(d32, pairs[2], pairs[3]));
    const auto fourth = hn::BitCast(d64, hn::InterleaveUpper(d32, pairs[2], pairs[3]));
    float* to = transposed + at * kTilePositions;
    const auto store = [&](auto v, int i) {
      store_wide<T>(d16, hn::BitCast(d16, v), to + i * kTilePositions);
    };
    store(hn::InterleaveLower(d64, first, third), 0);
    store(hn::InterleaveUpper(d64, first, third), 1);
    store(hn::InterleaveLower(d64, second, fourth), 2);
    store(hn::InterleaveUpper(d64, second, fourth), 3);
  };
  store_four(low, d);
  store_four(high, d + 4);
}

// keys: 32 of head_dim elements each
template <typename T>
HWY_INLINE void transpose_tile(const T* const* keys, std::int64_t head_dim, float* transposed) {
  constexpr bool kIsWide = std::is_same_v<T, float>;
  constexpr int kKeys = kIsWide ? 4 : kKeysAtOnce;
  constexpr int kElements = kIsWide ? 4 : 8;
  const std::int64_t whole = head_dim / kElements * kElements;
  for (int j = 0; j < kTilePositions; j += kKeys) {
    for (std::int64_t d = 0; d < whole; d += kElements) transpose_keys(keys + j, d, transposed + j);
  }
  for (std::int64_t d = whole; d < head_dim; ++d) {
    for (int j = 0; j < kTilePositions; ++j) {
      transposed[d * kTilePositions + j] = to_float(keys[j][d]);
    }
  }
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
