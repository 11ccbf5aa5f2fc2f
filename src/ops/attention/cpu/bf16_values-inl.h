// The values of one head, as the cpu attention multiplies them on machines that multiply pairs of
// bfloat16. A word has one dimension of two positions, an even one and the next.
#if defined(PAGODA_BF16_VALUES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_BF16_VALUES_INL_H
#undef PAGODA_BF16_VALUES_INL_H
#else
#define PAGODA_BF16_VALUES_INL_H
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_kernels-inl.h"

#if PAGODA_HAS_PAIR_DOTS

#include <immintrin.h>

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE VWords load_values(const std::byte* entry) {
  return VWords{_mm512_loadu_si512(entry)};
}

// Interleaves two entries: word i of pairs[0] and pairs[1] together is dimension i of `even` and of
// `odd`.
HWY_INLINE void interleave(VWords even, VWords odd, VWords* pairs) {
  const DWords words;
  const VWords index = hn::Add(hn::Iota(words, 0), hn::Set(words, 32u << 16));
  const VWords low = hn::Add(index, hn::ShiftLeft<16>(hn::Iota(words, 0)));
  const VWords high = hn::Add(low, hn::Set(words, 16u << 16 | 16u));
  pairs[0] = VWords{_mm512_permutex2var_epi16(even.raw, low.raw, odd.raw)};
  pairs[1] = VWords{_mm512_permutex2var_epi16(even.raw, high.raw, odd.raw)};
}

// The pairs of kHeld positions, from a multiple of kHeld on. All dimensions of a pair are adjacent.
// With kHasPanels only kPanelDims dimensions of a pair are adjacent; the next pair's follow.
template <int kHeld, bool kHasPanels>
class Bf16Values {
 public:
  static constexpr std::int64_t kPanelDims = 32;

  static std::int64_t floats(const AttentionCall& call) { return kHeld / 2 * call.padded_dim(); }
  Bf16Values(const AttentionCall& call, float* memory)
      : call_(call), pairs_(reinterpret_cast<std::uint32_t*>(memory)) {}

  // Loads the values at entries + offsets[p] of each position p. If only one position of a pair is
  // among them, the other half is 0.
  void load(const std::byte* entries, const std::int64_t* offsets, Visible positions,
            TileAhead& /*lines*/) {
    if (positions.begin % 2 != 0) {
      load_half(entries + offsets[positions.begin], positions.begin);
      ++positions.begin;
    }
    if (positions.end % 2 != 0 && positions.end > positions.begin) {
      --positions.end;
      load_half(entries + offsets[positions.end], positions.end);
    }
    const std::int64_t dim = call_.head_dim;
    const std::int64_t whole = dim / (2 * kLanes) * (2 * kLanes);
    for (int p = positions.begin; p < positions.end; p += 2) {
      const std::byte* const even = entries + offsets[p];
      const std::byte* const odd = entries + offsets[p + 1];
      for (std::int64_t d = 0; d < whole; d += 2 * kLanes) {
        store_interleaved(load_values(even + d * 2), load_values(odd + d * 2), at(p, d));
      }
      if (whole != dim) {
        store_interleaved(load_some(even, whole, dim - whole), load_some(odd, whole, dim - whole),
                          at(p, whole));
      }
    }
  }

  static constexpr bool kAreFinite = false;
  // Returns whether values are finite, so that their products with 0 are 0. Called after load(),
  // for whole pairs.
  bool are_finite(Visible positions) const {
    const hn::RebindToUnsigned<hn::Repartition<std::int16_t, DWords>> d16;
    const auto magnitude = hn::Set(d16, 0x7fff), least_exponent = hn::Set(d16, 0x0080);
    auto found = hn::Zero(d16);
    const std::int64_t width = kHasPanels ? kPanelDims : call_.padded_dim();
    for (std::int64_t d = 0; d < call_.padded_dim(); d += width) {
      const std::uint32_t* const begin = at(positions.begin, d);
      const std::uint32_t* const end = begin + (positions.end - positions.begin) / 2 * width;
      for (const std::uint32_t* words = begin; words < end; words += kLanes) {
        const auto values = hn::BitCast(d16, hn::LoadU(DWords(), words));
        // Adding 1 to an exponent of all ones carries into the sign bit.
        found = hn::Or(found, hn::Add(hn::And(values, magnitude), least_exponent));
      }
    }
    return _mm512_movepi16_mask(found.raw) == 0;
  }

 protected:
  // Returns the place of a dimension of a position's pair. From a multiple of kLanes on, kLanes
  // dimensions are adjacent.
  std::uint32_t* at(int position, std::int64_t dim) const {
    const int pair = position % kHeld / 2;
    if constexpr (!kHasPanels) return pairs_ + pair * call_.padded_dim() + dim;
    return pairs_ + dim / kPanelDims * kPanelDims * (kHeld / 2) + pair * kPanelDims +
           dim % kPanelDims;
  }

  const AttentionCall& call_;

 private:
  // Loads a pair of which only one position is given, with 0 for the other.
  HWY_INLINE void load_half(const std::byte* entry, int position) {
    const VWords none = hn::Zero(DWords());
    for (std::int64_t d = 0; d < call_.head_dim; d += 2 * kLanes) {
      const std::int64_t count = std::min<std::int64_t>(call_.head_dim - d, 2 * kLanes);
      const VWords values = load_some(entry, d, count);
      if (position % 2 == 0) {
        store_interleaved(values, none, at(position, d));
      } else {
        store_interleaved(none, values, at(position, d));
      }
    }
  }
  // Loads dimensions [first, first + count) of an entry, followed by zeros.
  static HWY_INLINE VWords load_some(const std::byte* entry, std::int64_t first,
                                     std::int64_t count) {
    const auto lanes = static_cast<__mmask32>((std::uint64_t{1} << count) - 1);
    return VWords{_mm512_maskz_loadu_epi16(lanes, entry + first * 2)};
  }
  static HWY_INLINE void store_interleaved(VWords even, VWords odd, std::uint32_t* to) {
    VWords pairs[2];
    interleave(even, odd, pairs);
    hn::StoreU(pairs[0], DWords(), to);
    hn::StoreU(pairs[1], DWords(), to + kLanes);
  }

  std::uint32_t* pairs_;
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PAGODA_HAS_PAIR_DOTS
#endif  // the target's pass
