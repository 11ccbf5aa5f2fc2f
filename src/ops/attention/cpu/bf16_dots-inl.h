// The cpu attention's inner loops on machines that multiply pairs of bfloat16. Keys and values are
// bfloat16, queries and weights are rounded to it, and sums are float32.
//
// A pair is two dimensions of a key or two positions of a value. Pairs of positions begin at even
// absolute positions. If a row sees only half of a pair, the other half counts as 0.
#if defined(PAGODA_BF16_DOTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_BF16_DOTS_INL_H
#undef PAGODA_BF16_DOTS_INL_H
#else
#define PAGODA_BF16_DOTS_INL_H
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_kernels-inl.h"
#include "ops/attention/cpu/bf16_values-inl.h"
#include "ops/attention/cpu/pair_sums-inl.h"

#if PAGODA_HAS_PAIR_DOTS

#include <immintrin.h>

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns sums + the products of both halves; inputs and results below 2^-126 count as 0.
HWY_INLINE V dot_pairs(V sums, VWords a, VWords b) {
  return V{_mm512_dpbf16_ps(sums.raw, reinterpret_cast<__m512bh>(a.raw),
                            reinterpret_cast<__m512bh>(b.raw))};
}

HWY_INLINE VWords round_pairs(V low, V high) {
  return VWords{reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.raw, low.raw))};
}

// Returns 2^x for x <= 0 within 4e-6, a five-hundredth of bfloat16's rounding error; 2^-125 for x
// below -125.
HWY_INLINE V exp2_for_bf16(V x) {
  const D d;
  const DWords words;
  const V least{_mm512_max_ps(_mm512_set1_ps(-125.0f), x.raw)};  // this operand order keeps a NaN
  // As in exp2_of().
  const V shift = hn::Set(d, 12582912.0f);
  const V shifted = hn::Add(least, shift);
  const V f = hn::Sub(least, hn::Sub(shifted, shift));
  V power = hn::Set(d, 0.009582852944731712f);
  power = hn::MulAdd(power, f, hn::Set(d, 0.055906426161527634f));
  power = hn::MulAdd(power, f, hn::Set(d, 0.24024099111557007f));
  power = hn::MulAdd(power, f, hn::Set(d, 0.6931241750717163f));
  power = hn::MulAdd(power, f, hn::Set(d, 1.0f));
  return hn::BitCast(
      d, hn::Add(hn::BitCast(words, power), hn::ShiftLeft<23>(hn::BitCast(words, shifted))));
}

struct Bf16Dots : PlainDots {
  using Unit = std::uint32_t;  // a unit of a query: a pair of dimensions
  static constexpr int kDimsPerUnit = 2;
  static constexpr int kUnitsPerWord = 1;
  static constexpr int kPositions = 2;
  // Prefetches a tile ahead, during scores and sums.
  using Ahead = TileAhead;
  static constexpr bool kFetchesRuns = false;
  static constexpr bool kFetchesTiles = true;

  static HWY_INLINE auto load_units(const float* q, float factor) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(q), _mm256_set1_ps(factor));
    return hn::Vec<hn::CappedTag<Unit, 4>>{reinterpret_cast<__m128i>(_mm256_cvtneps_pbh(scaled))};
  }
  static HWY_INLINE Unit unit(const float* q, std::int64_t count, float factor) {
    const Unit low = count > 0 ? to_bf16(q[0] * factor).bits : 0;
    const Unit high = count > 1 ? to_bf16(q[1] * factor).bits : 0;
    return high << 16 | low;
  }

  using Operand = VWords;
  static HWY_INLINE VWords operand(VWords words, int /*unit*/) { return words; }
  static HWY_INLINE VWords broadcast(Unit pair) { return hn::Set(DWords(), pair); }
  static HWY_INLINE V multiply(V sum, VWords x, VWords y) { return dot_pairs(sum, x, y); }

  // The sums of few rows, over 16 pairs of dimensions or of positions at a time.
  template <int kRows, int kVectors>
  struct BlockSums : SumTile<Bf16Dots, kRows, kVectors> {
    static constexpr int kMostRows =
        kVectors == 4 ? 5 : kMostFewRows;  // rows that registers have room for
    HWY_INLINE void begin_block() {}
    HWY_INLINE void end_block() {}
    HWY_INLINE void begin_block_of(const float* from, std::int64_t row_stride) {
      this->load(from, row_stride);
    }
    HWY_INLINE void end_block_of(float* to, std::int64_t row_stride) {
      this->store(to, row_stride);
    }
  };

  // Turns scores (in units of ln 2) of kRows rows into pairs of weights relative to each row's
  // largest, in place. A total is the sum of rounded weights. A position that a row does not see
  // gets weight 0 if any of the rows sees its pair.
  template <int kRows>
  static HWY_INLINE void weigh(float* scores, const Visible* visible, float* largest,
                               float* totals) {
    weigh_seen<kRows>(scores, visible, largest, totals);
    const int first = visible[0].begin / 2 * 2, last = (visible[kRows - 1].end + 1) / 2 * 2;
    for (int r = 0; r < kRows; ++r) {
      auto* const weights = reinterpret_cast<std::uint16_t*>(scores + r * kRangePositions);
      clear_weights(weights, first, visible[r].begin);
      clear_weights(weights, visible[r].end, last);
    }
  }

  class Values : public Bf16Values<kTilePositions, false> {
   public:
    using Bf16Values::Bf16Values;

    // Adds whole pairs. If a row does not see a position, its weight is 0 and the value is finite.
    template <int kRows>
    HWY_INLINE void add(const WeighedRows& rows, Visible positions, TileAhead& lines) const {
      if (positions.begin >= positions.end) return;
      const std::uint32_t* pairs = at(positions.begin, 0);
      const auto* weights =
          reinterpret_cast<const std::uint32_t*>(rows.weights) + positions.begin / 2;
      add_pairs<Bf16Dots, kRows>({.pairs = pairs,
                                  .weights = weights,
                                  .count = (positions.end - positions.begin) / 2,
                                  .padded_dim = call_.padded_dim()},
                                 rows.sums, lines);
    }
    HWY_INLINE void add_one(const WeighedRows& row, Visible positions, TileAhead& lines) const {
      if (positions.begin >= positions.end) return;
      if (positions.begin % 2 != 0) add_half(row, positions.begin++, 0xffff0000u);
      add<1>(row, {positions.begin, positions.end / 2 * 2}, lines);
      if (positions.end % 2 != 0 && positions.end > positions.begin)
        add_half(row, positions.end - 1, 0xffffu);
    }

   private:
    // Adds the half of a pair that the row sees; the value of the other half may be NaN.
    HWY_INLINE void add_half(const WeighedRows& row, int position, std::uint32_t half) const {
      const D d;
      const DWords words;
      const std::uint32_t* pair = at(position, 0);
      const auto* weights = reinterpret_cast<const std::uint32_t*>(row.weights);
      const VWords weight = hn::Set(words, weights[position / 2]);
      for (std::int64_t i = 0; i < call_.padded_dim(); i += kLanes) {
        const VWords value = hn::And(hn::LoadU(words, pair + i), hn::Set(words, half));
        hn::StoreU(dot_pairs(hn::LoadU(d, row.sums + i), weight, value), d, row.sums + i);
      }
    }
  };

  static HWY_INLINE void store_pair(V first, V second, float* to) {
    hn::StoreU(first, D(), to);
    hn::StoreU(second, D(), to + kLanes);
  }

 protected:
  // Does what weigh() does, except for positions that a row does not see. Each step is done for all
  // rows, so that no row waits for another's largest or total.
  template <int kRows>
  static HWY_INLINE void weigh_seen(float* scores, const Visible* visible, float* largest,
                                    float* totals) {
    const D d;
    V lanes[kRows];
    for (int r = 0; r < kRows; ++r)
      lanes[r] = largest_score(scores + r * kRangePositions, visible[r]);
    for (int r = 0; r < kRows; ++r) largest[r] = hn::GetLane(hn::MaxOfLanes(d, lanes[r]));
    for (int r = 0; r < kRows; ++r) {
      lanes[r] = weigh_row(scores + r * kRangePositions, visible[r], hn::Set(d, largest[r]));
    }
    for (int r = 0; r < kRows; ++r) totals[r] = hn::GetLane(hn::SumOfLanes(d, lanes[r]));
  }

  // Turns scores into weights; returns each lane's total. Positions that are not seen have weights
  // too small to change the total.
  static HWY_INLINE V weigh_row(float* scores, Visible visible, V largest) {
    const D d;
    const DWords words;
    const VWords ones = hn::Set(words, 0x3f803f80u);
    V sum = hn::Zero(d);
    if (visible.begin >= visible.end) return sum;
    auto* const pairs = reinterpret_cast<std::uint32_t*>(scores);
    const int end = weighed_end(visible);
    for (int i = weighed_begin(visible); i < end; i += kWeighed) {
      const V low = exp2_for_bf16(hn::Sub(hn::LoadU(d, scores + i), largest));
      const V high = exp2_for_bf16(hn::Sub(hn::LoadU(d, scores + i + kLanes), largest));
      const VWords weights = round_pairs(low, high);
      hn::StoreU(weights, words, pairs + i / 2);
      sum = dot_pairs(sum, weights, ones);
    }
    return sum;
  }

  static HWY_INLINE void clear_weights(std::uint16_t* weights, int begin, int end) {
    for (; begin < end; begin += kWeighed) {
      const int count = std::min(end - begin, kWeighed);
      const auto lanes = static_cast<__mmask32>((std::uint64_t{1} << count) - 1);
      _mm512_mask_storeu_epi16(weights + begin, lanes, _mm512_setzero_si512());
    }
  }
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PAGODA_HAS_PAIR_DOTS
#endif  // the target's pass
