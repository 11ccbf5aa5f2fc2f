// Codes in the cpu attention, for each target: queries and weights as integers, and the scales that
// turn exact sums of integers into scores and sums of values.
//
// The arithmetic, in float32 unless it says otherwise, each operation rounded once:
//
//   query    q~ = q rotated (quant/kv_rotation.h); largest = max|q~|
//            q16[d] = round(q~[d] * (32767 / largest)), nearest even; 0 if largest < 2^-100
//            factor = (largest * (1/32767)) * (score_factor / rotation width), NaN if largest is
//            not finite
//   score    isum = sum of q16[d] * code[d], exact: head_dim is at most kMostCodedDims
//            int8: (isum * scale) * factor; int4: fma(qsum, minimum, isum * scale) * factor, where
//            qsum is the sum of q16
//   weight   w = 2^(score - largest of the row in the range), as in float_dots-inl.h
//            u = round((w * scale) * (32767 / L)), L the largest w * scale of the range's positions
//            that the row sees; all 0 if L < 2^-100
//   sums     isum = sum of u * code over the range's 256 positions, exact
//            int8: isum * (L * (1/32767))
//            int4: fma(2 * isum - 15 * usum, L * (1/65534), csum), where usum is the sum of u and
//            csum that of w * middle, middle = fma(7.5, scale, minimum); its lanes are positions
//            modulo a vector, each summed in order. So the errors of u are multiplied by numbers
//            whose mean is 0. (An error that all dimensions share would be gathered in one
//            dimension by the rotation.)
//
// Positions that a row does not see have w = u = 0 by selection, so that their scales have no
// effect. The same holds for a visible position whose weight underflowed. A NaN scale of a position
// with a weight makes the row NaN.
#if defined(PAGODA_CODE_SCALES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_CODE_SCALES_INL_H
#undef PAGODA_CODE_SCALES_INL_H
#else
#define PAGODA_CODE_SCALES_INL_H
#endif

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_kernels-inl.h"
#include "ops/attention/cpu/decoded_dots-inl.h"
#include "ops/kv_write/kv_rotation-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DInts = hn::RebindToSigned<D>;
using VInts = hn::Vec<DInts>;
using DShorts = hn::Repartition<std::int16_t, D>;

constexpr float kLargestShort = 32767;
constexpr float kLeastLargest = 0x1p-100f;

// Returns the largest lane as a number. Lanes are the bits of magnitudes; a NaN is the largest.
HWY_INLINE float largest_of(VWords bits) {
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(DWords(), bits)));
}

// The scales of positions and of rows, which turn sums into scores.
template <bool kHasMinima>
struct CodeScoreScales {
  struct Positions {
    V scales;
    V minima;
  };
  const float* scales;   // [positions]
  const float* minima;   // [positions]
  const float* factors;  // [rows]
  const float* sums;     // [rows], of the queries' integers

  HWY_INLINE Positions of_positions(int position) const {
    const V own = hn::LoadU(D(), scales + position);
    return {own, kHasMinima ? hn::LoadU(D(), minima + position) : own};
  }
  HWY_INLINE V score_of(VInts sum, const Positions& positions, int row) const {
    const D d;
    V score = hn::Mul(hn::ConvertTo(d, sum), positions.scales);
    if constexpr (kHasMinima) score = hn::MulAdd(hn::Set(d, sums[row]), positions.minima, score);
    return hn::Mul(score, hn::Set(d, factors[row]));
  }
};

template <KvFormat kKeys, KvFormat kValues>
class CodeCoding {
  static constexpr bool kKeysAreInt4 = kKeys == KvFormat::kInt4;
  static constexpr bool kValuesAreInt4 = kValues == KvFormat::kInt4;

 public:
  using ScoreScales = CodeScoreScales<kKeysAreInt4>;
  // Words of a tile that a word of a key becomes: pairs of 16-bit integers.
  static constexpr int kTileWords = kKeysAreInt4 ? 4 : 2;

  CodeCoding(const AttentionCall& call, const AttentionPlan::Counts& counts, float* memory)
      : call_(call),
        width_(static_cast<float>(kv_rotation_width(call.head_dim))),
        entry_floats_(entry_floats(call)),
        entry_(memory),
        units_(entry_ + entry_floats_),
        factors_(units_ + kMaxRows * padded_words(call)),
        query_sums_(factors_ + Softmax::padded(counts.states)),
        value_factors_(query_sums_ + Softmax::padded(counts.states)),
        value_sums_(value_factors_ + Softmax::padded(counts.states)),
        weight_sums_(value_sums_ + Softmax::padded(counts.states)),
        scales_(weight_sums_ + Softmax::padded(counts.states)) {}
  static std::int64_t floats(const AttentionCall& call, const AttentionPlan::Counts& counts) {
    return entry_floats(call) + kMaxRows * padded_words(call) + 5 * Softmax::padded(counts.states) +
           call.kv_heads * 4 * kRangePositions;
  }
  static std::int64_t key_bytes(const AttentionCall& call) { return call.keys.entry_bytes; }
  static std::int64_t padded_words(const AttentionCall& call) {
    return ((key_bytes(call) + 3) / 4 + kLanes - 1) / kLanes * kLanes * kTileWords;
  }
  // Returns the number of units of a prepared query. Each has the size of a float.
  static std::int64_t num_dims(const AttentionCall& call) { return padded_words(call); }
  static float query_factor(const AttentionCall& /*call*/) { return 1; }

  // Rounds a query to integers of 16 bits, in the order of a tile's words.
  const float* prepare(const float* query, int row, std::int64_t state) {
    const D d;
    const DWords words;
    const std::int64_t dim = call_.head_dim, padded = padded_entry(dim);
    std::copy_n(query, dim, entry_);
    std::fill(entry_ + dim, entry_ + padded + 16, 0.0f);
    rotate_padded_entry(entry_, dim);
    VWords most = hn::Zero(words);
    for (std::int64_t i = 0; i < padded; i += kLanes) {
      const VWords bits = hn::BitCast(words, hn::LoadU(d, entry_ + i));
      most = hn::Max(most, hn::And(bits, hn::Set(words, 0x7fffffffu)));
    }
    const float largest = largest_of(most);
    const bool is_finite = largest <= std::numeric_limits<float>::max();
    const V inverse =
        hn::Set(d, is_finite && largest >= kLeastLargest ? kLargestShort / largest : 0.0f);
    factors_[state] = is_finite ? (largest * (1 / kLargestShort)) * (score_factor(call_) / width_)
                                : std::numeric_limits<float>::quiet_NaN();
    float* const units = units_ + row * padded_words(call_);
    query_sums_[state] = static_cast<float>(round_query(inverse, units));
    return units;
  }

  // Loads the scales of the positions that the item sees.
  void begin(const VisibleRange& range) {
    const int first = range.begin / kTilePositions * kTilePositions;
    const int last = (range.end + kTilePositions - 1) / kTilePositions * kTilePositions;
    for (int i = 0; i < 4 * range.item->num_heads; ++i) {
      float* const to = scales_ + i * kRangePositions;
      std::fill(to + first, to + range.begin, 0.0f);
      std::fill(to + range.end, to + last, 0.0f);
    }
    load_scales<kKeysAreInt4 ? 2 : 1>(range, call_.keys, scales_);
    load_scales<kValuesAreInt4 ? 2 : 1>(range, call_.values, scales_ + 2 * kRangePositions);
    for (int head = 0; kValuesAreInt4 && head < range.item->num_heads; ++head) {
      const D d;
      const float* const scales = scales_ + (head * 4 + 2) * kRangePositions;
      float* const minima = scales_ + (head * 4 + 3) * kRangePositions;
      for (int i = first; i < last; i += kLanes) {
        const V middle =
            hn::MulAdd(hn::Set(d, 7.5f), hn::LoadU(d, scales + i), hn::LoadU(d, minima + i));
        hn::StoreU(middle, d, minima + i);
      }
    }
  }
  EntryPlaces keys(const VisibleRange& range, int head, int /*tile*/) const {
    return cached_keys(call_, range, head);
  }
  EntryPlaces values(const VisibleRange& range, int head, int /*tile*/) const {
    return cached_values(call_, range, head);
  }
  HWY_INLINE ScoreScales score_scales(int head, std::int64_t state, int position) const {
    const float* const scales = scales_ + head * 4 * kRangePositions + position;
    return {scales, scales + kRangePositions, factors_ + state, query_sums_ + state};
  }

  // Turns scores (in units of ln 2) of kRows rows into pairs of integer weights, in place. It does
  // so for all positions that the item sees. Each step is done for all rows, so that no row waits
  // for another's largest or total.
  static constexpr bool kWeighs = true;
  template <int kRows>
  HWY_INLINE void weigh(const VisibleRange& range, const Visible* visible, int head,
                        std::int64_t state, float* scores, float* largest, float* totals) {
    const D d;
    const float* const scales = scales_ + (head * 4 + 2) * kRangePositions;
    V lanes[kRows];
    for (int r = 0; r < kRows; ++r)
      lanes[r] = largest_score(scores + r * kRangePositions, visible[r]);
    for (int r = 0; r < kRows; ++r) largest[r] = hn::GetLane(hn::MaxOfLanes(d, lanes[r]));
    VWords most[kRows];
    V sums[kRows];
    for (int r = 0; r < kRows; ++r) {
      lanes[r] = weigh_row(scores + r * kRangePositions, scales, visible[r], hn::Set(d, largest[r]),
                           most[r], sums[r]);
    }
    float factors[kRows];
    for (int r = 0; r < kRows; ++r) {
      totals[r] = hn::GetLane(hn::SumOfLanes(d, lanes[r]));
      const float top = largest_of(most[r]);
      constexpr float kUnit = 1 / kLargestShort / (kValuesAreInt4 ? 2 : 1);
      factors[r] = top < kLeastLargest ? 0.0f : kLargestShort / top;
      value_factors_[state + r] = top < kLeastLargest ? 0.0f : top * kUnit;
      if constexpr (kValuesAreInt4)
        value_sums_[state + r] = hn::GetLane(hn::SumOfLanes(d, sums[r]));
    }
    VInts counts[kRows];
    for (int r = 0; r < kRows; ++r) {
      counts[r] =
          round_row(scores + r * kRangePositions, range, visible[r], hn::Set(d, factors[r]));
    }
    for (int r = 0; kValuesAreInt4 && r < kRows; ++r) {
      weight_sums_[state + r] = static_cast<float>(sum_of_lanes(counts[r]));
    }
  }

  // Converts a row's integer sums to sums of values.
  HWY_INLINE void finish_sums(std::int64_t state, float* sums) const {
    const D d;
    const V factor = hn::Set(d, value_factors_[state]);
    for (std::int64_t i = 0; i < call_.padded_dim(); i += kLanes) {
      const VInts own = hn::BitCast(DInts(), hn::LoadU(d, sums + i));
      if constexpr (kValuesAreInt4) {
        // After NaNs the sum is arbitrary, and the product may overflow: unsigned numbers wrap.
        const auto weights =
            static_cast<std::uint32_t>(static_cast<std::int32_t>(weight_sums_[state]));
        const VInts middle = hn::Set(DInts(), static_cast<std::int32_t>(15 * weights));
        const V centred = hn::ConvertTo(d, hn::Sub(hn::Add(own, own), middle));
        hn::StoreU(hn::MulAdd(centred, factor, hn::Set(d, value_sums_[state])), d, sums + i);
      } else {
        hn::StoreU(hn::Mul(hn::ConvertTo(d, own), factor), d, sums + i);
      }
    }
  }

  static constexpr bool kEndsRows = true;
  void end_row(const float* sums, float total, float* out) {
    if constexpr (kValuesAreInt4) {
      const std::int64_t half = call_.padded_dim() / 2;
      order_dims(sums, half, entry_);
      order_dims(sums + half, half, entry_ + call_.head_dim / 2);
    } else {
      order_dims(sums, call_.padded_dim(), entry_);
    }
    end_rotated_row(call_, entry_, total, out);
  }

 private:
  // Returns the sum of all lanes, which may wrap if NaNs were rounded.
  static HWY_INLINE std::int32_t sum_of_lanes(VInts counts) {
    HWY_ALIGN std::uint32_t lanes[kLanes];
    hn::Store(hn::BitCast(DWords(), counts), DWords(), lanes);
    std::uint32_t sum = 0;
    for (const std::uint32_t lane : lanes) sum += lane;
    return static_cast<std::int32_t>(sum);
  }

  // Turns scores into weights times their values' scales; returns each lane's total of weights.
  static HWY_INLINE V weigh_row(float* scores, const float* scales, Visible visible, V largest,
                                VWords& most, V& sum) {
    const D d;
    const DWords words;
    V total = hn::Zero(d);
    most = hn::Zero(words);
    sum = total;
    if (visible.begin >= visible.end) return total;
    const int end = weighed_end(visible);
    for (int i = weighed_begin(visible); i < end; i += kLanes) {
      const V weight = exp2_of(hn::Sub(hn::LoadU(d, scores + i), largest));
      const auto counts = hn::Gt(weight, hn::Zero(d));
      total = hn::Add(total, weight);
      const V scaled = hn::IfThenElseZero(counts, hn::Mul(weight, hn::LoadU(d, scales + i)));
      hn::StoreU(scaled, d, scores + i);
      most = hn::Max(most, hn::And(hn::BitCast(words, scaled), hn::Set(words, 0x7fffffffu)));
      if constexpr (kValuesAreInt4) {
        const V middle = hn::LoadU(d, scales + kRangePositions + i);
        sum = hn::Add(sum, hn::IfThenElseZero(counts, hn::Mul(weight, middle)));
      }
    }
    return total;
  }

  // Rounds weights to integers, 0 for positions that the row does not see; returns each lane's sum.
  static HWY_INLINE VInts round_row(float* weights, const VisibleRange& range, Visible visible,
                                    V factor) {
    const D d;
    const DShorts shorts;
    const hn::Rebind<std::int16_t, D> half;
    auto* const to = reinterpret_cast<std::int16_t*>(weights);
    VInts sum = hn::Zero(DInts());
    const bool sees = visible.begin < visible.end;
    const int begin = sees ? weighed_begin(visible) : kRangePositions;
    const int end = sees ? weighed_end(visible) : kRangePositions;
    int i = range.begin / kWeighed * kWeighed;
    for (; i < std::min(begin, range.end); i += kWeighed)
      hn::StoreU(hn::Zero(shorts), shorts, to + i);
    for (; i < end; i += kWeighed) {
      const VInts low = hn::NearestInt(hn::Mul(hn::LoadU(d, weights + i), factor));
      const VInts high = hn::NearestInt(hn::Mul(hn::LoadU(d, weights + i + kLanes), factor));
      if constexpr (kValuesAreInt4) sum = hn::Add(sum, hn::Add(low, high));
      hn::StoreU(hn::DemoteTo(half, low), half, to + i);
      hn::StoreU(hn::DemoteTo(half, high), half, to + i + kLanes);
    }
    for (; i < range.end; i += kWeighed) hn::StoreU(hn::Zero(shorts), shorts, to + i);
    return sum;
  }

  // Returns the floats of an entry, with room for the vectors that are written past its end.
  static std::int64_t entry_floats(const AttentionCall& call) {
    return std::max(call.padded_dim(), padded_words(call)) + 32;
  }

  // Rounds entry_ * inverse to units: dimensions 0 to 3 of a word become the pairs (0, 2) and (1,
  // 3). For int4 keys, the pairs of both halves alternate, and the sum is returned.
  HWY_INLINE std::int32_t round_query(V inverse, float* units) const {
    const D d;
    const hn::Repartition<std::uint64_t, D> quads;
    const DWords words;
    const std::int64_t dim = call_.head_dim;
    VInts sum = hn::Zero(DInts());
    const auto rounded = [&](std::int64_t i) HWY_ATTR {
      return hn::NearestInt(hn::Mul(hn::LoadU(d, entry_ + i), inverse));
    };
    // The lower half of each block of 128 bits has the two pairs of the block's dimensions.
    const auto paired = [&](std::int64_t i) HWY_ATTR {
      const VWords x = hn::BitCast(words, rounded(i));
      const VWords low = hn::And(x, hn::Set(words, 0xffffu));
      return hn::BitCast(quads, hn::Or(low, hn::ShiftLeft<16>(hn::Shuffle1032(x))));
    };
    float* const end = units + padded_words(call_);
    if constexpr (kKeysAreInt4) {
      const std::int64_t half = dim / 2;
      for (std::int64_t i = 0; i < half; i += kLanes, units += kLanes) {
        const auto both = hn::InterleaveLower(quads, paired(i), paired(half + i));
        hn::StoreU(hn::BitCast(d, both), d, units);
      }
      for (std::int64_t i = 0; i < dim; i += kLanes) sum = hn::Add(sum, rounded(i));
    } else {
      for (std::int64_t i = 0; i < dim; i += 2 * kLanes, units += kLanes) {
        const auto both = hn::ConcatEven(quads, paired(i + kLanes), paired(i));
        hn::StoreU(hn::BitCast(d, both), d, units);
      }
    }
    std::fill(units, end, 0.0f);
    return sum_of_lanes(sum);
  }

  // Loads kNumScales scales of each head and position. Those of a head begin at to + head * 4 *
  // kRangePositions: first all scales, then all minima.
  template <int kNumScales>
  HWY_INLINE void load_scales(const VisibleRange& range, const CallEntries& entries,
                              float* to) const {
    const DWords words;
    const hn::Rebind<std::uint16_t, D> shorts;
    const std::int64_t stride = call_.block_size;
    for (int r = 0; r < range.num_scale_runs; ++r) {
      const ScaleRun& run = range.scale_runs[r];
      const bf16* from =
          entries.scales + run.offset +
          (run.block * call_.kv_heads + range.item->first_head) * kNumScales * stride;
      const int count = run.end - run.begin;
      float* scales = to + run.begin;
      const auto widen = [&](int i, int step) HWY_ATTR {
        const auto bits = hn::LoadU(shorts, reinterpret_cast<const std::uint16_t*>(from + i));
        hn::StoreU(hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(words, bits))), D(),
                   scales + step + i);
      };
      for (int head = 0; head < range.item->num_heads; ++head, scales += 4 * kRangePositions) {
        PAGODA_UNROLL
        for (int s = 0; s < kNumScales; ++s, from += stride) {
          if (HWY_LIKELY(count == kLanes)) {
            widen(0, s * kRangePositions);
            continue;
          }
          int i = 0;
          for (; i + kLanes <= count; i += kLanes) widen(i, s * kRangePositions);
          for (; i < count; ++i) scales[s * kRangePositions + i] = to_float(from[i]);
        }
      }
    }
  }

  // Brings `count` sums, as CodeDots::Values leaves them, into the order of dimensions.
  static HWY_INLINE void order_dims(const float* sums, std::int64_t count, float* to) {
    const D d;
    for (std::int64_t i = 0; i < count; i += 2 * kLanes) {
      const V even = hn::LoadU(d, sums + i), odd = hn::LoadU(d, sums + i + kLanes);
      if constexpr (kLanes == 16) {
        HWY_ALIGN static constexpr std::int32_t kBlocks[16] = {0, 1, 2, 3, 8,  9,  10, 11,
                                                               4, 5, 6, 7, 12, 13, 14, 15};
        const auto blocks = hn::SetTableIndices(d, kBlocks);
        const V low = hn::ConcatLowerLower(d, odd, even), high = hn::ConcatUpperUpper(d, odd, even);
        hn::StoreU(hn::TableLookupLanes(low, blocks), d, to + i);
        hn::StoreU(hn::TableLookupLanes(high, blocks), d, to + i + kLanes);
      } else if constexpr (kLanes == 8) {
        hn::StoreU(hn::ConcatLowerLower(d, odd, even), d, to + i);
        hn::StoreU(hn::ConcatUpperUpper(d, odd, even), d, to + i + kLanes);
      } else {
        hn::StoreU(even, d, to + i);
        hn::StoreU(odd, d, to + i + kLanes);
      }
    }
  }

  const AttentionCall& call_;
  const float width_;
  const std::int64_t entry_floats_;
  float* entry_;          // [entry_floats]
  float* units_;          // [kMaxRows, padded_words]
  float* factors_;        // [states]
  float* query_sums_;     // [states]
  float* value_factors_;  // [states]
  float* value_sums_;     // [states], of weights and middles
  float* weight_sums_;    // [states], of weights as integers
  float* scales_;         // [kv_heads, 4, kRangePositions]: keys' scales, minima, then values'
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
