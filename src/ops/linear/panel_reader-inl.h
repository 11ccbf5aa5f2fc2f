// Panels of each format as vectors of float32, for each target (backend/cpu/cpu_weight.h draws the
// layouts).
#if defined(PAGODA_PANEL_READER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_PANEL_READER_INL_H
#undef PAGODA_PANEL_READER_INL_H
#else
#define PAGODA_PANEL_READER_INL_H
#endif

#include <cstddef>
#include <cstdint>

#include "backend/cpu/cpu_weight.h"
#include "hwy/highway.h"

// Loops over registers must vanish: an array that is indexed at run time lives in memory.
#undef PAGODA_UNROLL
#define PAGODA_UNROLL _Pragma("GCC unroll 16")

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, kPanelColumns>;
using V = hn::Vec<D>;
constexpr int kLanes = hn::MaxLanes(D());
constexpr int kVectors = kPanelColumns / kLanes;  // a panel's columns

// One k of a panel's 16 columns.
struct Vectors {
  V v[kVectors];

  HWY_INLINE void clear() {
    PAGODA_UNROLL
    for (int i = 0; i < kVectors; ++i) v[i] = hn::Zero(D());
  }
  HWY_INLINE void load(const float* from) {
    PAGODA_UNROLL
    for (int i = 0; i < kVectors; ++i) v[i] = hn::LoadU(D(), from + i * kLanes);
  }
  HWY_INLINE void store(float* to) const {
    PAGODA_UNROLL
    for (int i = 0; i < kVectors; ++i) hn::StoreU(v[i], D(), to + i * kLanes);
  }
  // The product's one step.
  HWY_INLINE void add(float x, const Vectors& w) {
    PAGODA_UNROLL
    for (int i = 0; i < kVectors; ++i) v[i] = hn::MulAdd(hn::Set(D(), x), w.v[i], v[i]);
  }
};

template <typename T>
HWY_INLINE const T* as(const std::byte* bytes) {
  return reinterpret_cast<const T*>(bytes);
}

HWY_INLINE void load_f16(const std::byte* from, Vectors& to) {
  const hn::Rebind<hwy::float16_t, D> d16;
  PAGODA_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    to.v[i] = hn::PromoteTo(D(), hn::LoadU(d16, as<hwy::float16_t>(from) + i * kLanes));
  }
}

// load() takes the panel's next kBlock k, read() writes kStep of them from k = i on.
template <WeightFormat kFormat>
struct PanelReader;

template <>
struct PanelReader<WeightFormat::kF32> {
  static constexpr int kBlock = 1, kStep = 1, kBlockBytes = 4 * kPanelColumns;
  HWY_INLINE void load(const std::byte* block) { w.load(as<float>(block)); }
  HWY_INLINE void read(int, Vectors (&values)[kStep]) const { values[0] = w; }
  Vectors w;
};

template <>
struct PanelReader<WeightFormat::kF16> {
  static constexpr int kBlock = 1, kStep = 1, kBlockBytes = 2 * kPanelColumns;
  HWY_INLINE void load(const std::byte* block) { load_f16(block, w); }
  HWY_INLINE void read(int, Vectors (&values)[kStep]) const { values[0] = w; }
  Vectors w;
};

template <>
struct PanelReader<WeightFormat::kBF16> {
  static constexpr int kBlock = 1, kStep = 1, kBlockBytes = 2 * kPanelColumns;
  HWY_INLINE void load(const std::byte* block) {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::RebindToUnsigned<D> d32;
    PAGODA_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const auto bits = hn::PromoteTo(d32, hn::LoadU(d16, as<std::uint16_t>(block) + i * kLanes));
      w.v[i] = hn::BitCast(D(), hn::ShiftLeft<16>(bits));
    }
  }
  HWY_INLINE void read(int, Vectors (&values)[kStep]) const { values[0] = w; }
  Vectors w;
};

template <>
struct PanelReader<WeightFormat::kQ8_0> {
  static constexpr int kBlock = 32, kStep = 1, kBlockBytes = (2 + 32) * kPanelColumns;
  HWY_INLINE void load(const std::byte* block) {
    load_f16(block, scale);
    q = as<std::int8_t>(block) + 2 * kPanelColumns;
  }
  HWY_INLINE void read(int i, Vectors (&values)[kStep]) const {
    const hn::Rebind<std::int8_t, D> d8;
    const hn::RebindToSigned<D> d32;
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const auto bytes = hn::LoadU(d8, q + i * kPanelColumns + v * kLanes);
      values[0].v[v] = hn::Mul(scale.v[v], hn::ConvertTo(D(), hn::PromoteTo(d32, bytes)));
    }
  }
  Vectors scale;
  const std::int8_t* q;
};

// The 16 pairs of a block's four-bit numbers, scaled and shifted: scale * q + offset.
struct PairReader {
  static constexpr int kBlock = 32, kStep = 2;
  HWY_INLINE void read(int i, Vectors (&values)[kStep]) const {
    const hn::Rebind<std::uint8_t, D> d8;
    const hn::RebindToSigned<D> d32;
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const auto bytes = hn::LoadU(d8, pairs + i / 2 * kPanelColumns + v * kLanes);
      const auto both = hn::PromoteTo(d32, bytes);
      const auto even = hn::ConvertTo(D(), hn::And(both, hn::Set(d32, 15)));
      const auto odd = hn::ConvertTo(D(), hn::ShiftRight<4>(both));
      values[0].v[v] = hn::MulAdd(scale.v[v], even, offset.v[v]);
      values[1].v[v] = hn::MulAdd(scale.v[v], odd, offset.v[v]);
    }
  }
  Vectors scale, offset;
  const std::uint8_t* pairs;
};

template <>
struct PanelReader<WeightFormat::kQ4_0> : PairReader {
  static constexpr int kBlockBytes = (2 + 16) * kPanelColumns;
  HWY_INLINE void load(const std::byte* block) {
    load_f16(block, scale);
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      offset.v[v] = hn::Mul(scale.v[v], hn::Set(D(), -8.0f));
    }
    pairs = as<std::uint8_t>(block) + 2 * kPanelColumns;
  }
};

template <>
struct PanelReader<WeightFormat::kQ4_1> : PairReader {
  static constexpr int kBlockBytes = (4 + 16) * kPanelColumns;
  HWY_INLINE void load(const std::byte* block) {
    load_f16(block, scale);
    load_f16(block + 2 * kPanelColumns, offset);
    pairs = as<std::uint8_t>(block) + 4 * kPanelColumns;
  }
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
