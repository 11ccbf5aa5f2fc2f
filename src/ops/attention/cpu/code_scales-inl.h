// Codes in the cpu attention, for each target: queries and weights as integers, and the scales that
// turn exact sums of integers into scores and sums of values.
//
// The arithmetic, in float32 where it says nothing else, each operation rounded once:
//
//   query    q~ = q rotated (quant/kv_rotation.h); largest = max|q~|
//            q16[d] = round(q~[d] * (32767 / largest)), nearest even; 0 where largest < 2^-100
//            factor = (largest * (1/32767)) * (score_factor / rotation width), NaN where largest is
//            not finite
//   score    isum = sum of q16[d] * code[d], exact: head_dim is at most kMostCodedDims
//            int8: (isum * scale) * factor; int4: fma(qsum, minimum, isum * scale) * factor, where
//            qsum is the sum of q16
//   weight   w = 2^(score - largest of the row in the range), as in float_dots-inl.h
//            u = round((w * scale) * (32767 / L)), L the largest w * scale of the range's positions
//            that the row sees; all 0 where L < 2^-100
//   sums     isum = sum of u * code over the range's 256 positions, exact
//            int8: isum * (L * (1/32767))
//            int4: fma(2 * isum - 15 * usum, L * (1/65534), csum), where usum is the sum of u and
//            csum that of w * middle, middle = fma(7.5, scale, minimum); its lanes are positions
//            modulo a vector, each summed in order. So the errors of u are times numbers that are 0
//            in the mean: what all dimensions have in common a rotation gathers in one.
//
// What a row does not see has w = u = 0 by selection, so that its scales touch nothing; the same is
// true of what it sees under a weight that underflowed. A NaN among scales that have a weight makes
// a row NaN.
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

// Returns the largest of magnitudes' bits as a number, NaN above all.
HWY_INLINE float largest_of(VWords bits) {
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(DWords(), bits)));
}

// The scales of a row's positions, and of rows, that make scores of sums.
template <bool kHasMinima>
struct CodeScoreScales {
  struct Positions {
    V scales;
    V minima;
  };
  const float* scales;   // [positions]
  const float* minima;   // likewise
  const float* factors;  // [rows]
  const float* sums;     // [rows] of queries

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
        shorts_(reinterpret_cast<std::int16_t*>(entry_ + entry_floats_)),
        units_(entry_ + 2 * entry_floats_),
        factors_(units_ + kMaxRows * padded_words(call)),
        query_sums_(factors_ + Softmax::padded(counts.states)),
        value_factors_(query_sums_ + Softmax::padded(counts.states)),
        value_sums_(value_factors_ + Softmax::padded(counts.states)),
        weight_sums_(value_sums_ + Softmax::padded(counts.states)),
        scales_(weight_sums_ + Softmax::padded(counts.states)) {}
  static std::int64_t floats(const AttentionCall& call, const AttentionPlan::Counts& counts) {
    return 2 * entry_floats(call) + kMaxRows * padded_words(call) +
           5 * Softmax::padded(counts.states) + call.kv_heads * 4 * kRangePositions;
  }
  static std::int64_t key_bytes(const AttentionCall& call) { return call.keys.entry_bytes; }
  static std::int64_t padded_words(const AttentionCall& call) {
    return ((key_bytes(call) + 3) / 4 + kLanes - 1) / kLanes * kLanes * kTileWords;
  }
  // Returns the units of a prepared query, each in a float's place.
  static std::int64_t num_dims(const AttentionCall& call) { return padded_words(call); }
  static float query_factor(const AttentionCall& /*call*/) { return 1; }

  // Rounds a query to integers of 16 bits, in the order of a tile's words.
  const float* prepare(const float* query, int row, std::int64_t state) {
    const D d;
    const DWords words;
    const std::int64_t dim = call_.head_dim, padded = padded_entry(dim);
    std::copy_n(query, dim, entry_);
    std::fill(entry_ + dim, entry_ + padded, 0.0f);
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
    VInts sum = hn::Zero(DInts());
    for (std::int64_t i = 0; i < padded; i += kLanes) {
      const VInts rounded = hn::NearestInt(hn::Mul(hn::LoadU(d, entry_ + i), inverse));
      const hn::Rebind<std::int16_t, D> shorts;
      hn::StoreU(hn::DemoteTo(shorts, rounded), shorts, shorts_ + i);
      sum = hn::Add(sum, rounded);
    }
    factors_[state] = is_finite ? (largest * (1 / kLargestShort)) * (score_factor(call_) / width_)
                                : std::numeric_limits<float>::quiet_NaN();
    query_sums_[state] = static_cast<float>(hn::GetLane(hn::SumOfLanes(DInts(), sum)));
    float* const units = units_ + row * padded_words(call_);
    arrange(units);
    return units;
  }

  // Loads the scales of what the item sees of the range.
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
    return {call_.keys.elements + (range.item->first_head + head) * call_.keys.entry_bytes,
            range.offsets};
  }
  EntryPlaces values(const VisibleRange& range, int head, int /*tile*/) const {
    return {call_.values.elements + (range.item->first_head + head) * call_.values.entry_bytes,
            range.value_offsets};
  }
  HWY_INLINE ScoreScales score_scales(int head, std::int64_t state, int position) const {
    const float* const scales = scales_ + head * 4 * kRangePositions + position;
    return {scales, scales + kRangePositions, factors_ + state, query_sums_ + state};
  }

  // Rounds weights to pairs of integers, in their place, of all positions that the item sees.
  HWY_INLINE void round_weights(const VisibleRange& range, Visible visible, int head,
                                std::int64_t state, float* weights) {
    const D d;
    const DWords words;
    const float* const scales = scales_ + (head * 4 + 2) * kRangePositions;
    const bool sees = visible.begin < visible.end;
    const int first = sees ? visible.begin / kLoaded * kLoaded : kRangePositions;
    const int last = sees ? (visible.end + kLoaded - 1) / kLoaded * kLoaded : 0;
    const int first_seen = sees ? visible.begin / kLanes * kLanes : kRangePositions;
    const int last_seen = sees ? (visible.end + kLanes - 1) / kLanes * kLanes : 0;
    VWords most = hn::Zero(words);
    V sum = hn::Zero(d);
    for (int i = first_seen; i < last_seen; i += kLanes) {
      const V weight = hn::LoadU(d, weights + i);
      const auto counts = hn::Gt(weight, hn::Zero(d));
      const V scaled = hn::IfThenElseZero(counts, hn::Mul(weight, hn::LoadU(d, scales + i)));
      hn::StoreU(scaled, d, weights + i);
      most = hn::Max(most, hn::And(hn::BitCast(words, scaled), hn::Set(words, 0x7fffffffu)));
      if constexpr (kValuesAreInt4) {
        const V middle = hn::LoadU(d, scales + kRangePositions + i);
        sum = hn::Add(sum, hn::IfThenElseZero(counts, hn::Mul(weight, middle)));
      }
    }
    const float largest = largest_of(most);
    const V inverse = hn::Set(d, largest < kLeastLargest ? 0.0f : kLargestShort / largest);
    const DShorts shorts;
    const hn::Rebind<std::int16_t, D> half;
    VInts weight_sum = hn::Zero(DInts());
    auto* const to = reinterpret_cast<std::int16_t*>(weights);
    for (int i = range.begin / kLoaded * kLoaded; i < range.end; i += kLoaded) {
      if (i < first || i >= last) {
        hn::StoreU(hn::Zero(shorts), shorts, to + i);
        continue;
      }
      const auto rounded = [&](int at) HWY_ATTR {
        if (at < first_seen || at >= last_seen) return hn::Zero(DInts());
        return hn::NearestInt(hn::Mul(hn::LoadU(d, weights + at), inverse));
      };
      const VInts low = rounded(i), high = rounded(i + kLanes);
      if constexpr (kValuesAreInt4) weight_sum = hn::Add(weight_sum, hn::Add(low, high));
      hn::StoreU(hn::DemoteTo(half, low), half, to + i);
      hn::StoreU(hn::DemoteTo(half, high), half, to + i + kLanes);
    }
    constexpr float kUnit = 1 / kLargestShort / (kValuesAreInt4 ? 2 : 1);
    value_factors_[state] = largest < kLeastLargest ? 0 : largest * kUnit;
    if constexpr (kValuesAreInt4) {
      value_sums_[state] = hn::GetLane(hn::SumOfLanes(d, sum));
      weight_sums_[state] = static_cast<float>(hn::GetLane(hn::SumOfLanes(DInts(), weight_sum)));
    }
  }

  // Makes a row's sums of integers sums of values.
  HWY_INLINE void finish_sums(std::int64_t state, float* sums) const {
    const D d;
    const V factor = hn::Set(d, value_factors_[state]);
    for (std::int64_t i = 0; i < call_.padded_dim(); i += kLanes) {
      const VInts own = hn::BitCast(DInts(), hn::LoadU(d, sums + i));
      if constexpr (kValuesAreInt4) {
        const VInts middle = hn::Set(DInts(), 15 * static_cast<std::int32_t>(weight_sums_[state]));
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
  // Positions whose weights are rounded together.
  static constexpr int kLoaded = 2 * kLanes;

  // Returns the floats of an entry, with whatever is written behind its end.
  static std::int64_t entry_floats(const AttentionCall& call) {
    return std::max(call.padded_dim(), padded_words(call)) + 32;
  }

  // Makes units of shorts_: of a word's dimensions 0 to 3 the pairs 0, 2 and 1, 3; of int4 those of
  // both halves in turns.
  HWY_INLINE void arrange(float* units) const {
    const hn::Repartition<std::uint64_t, D> quads;
    const std::int64_t dim = call_.head_dim;
    auto* const arranged = reinterpret_cast<std::uint64_t*>(kKeysAreInt4 ? entry_ : units);
    const auto swap = [&](const std::int16_t* from, std::int64_t count,
                          std::uint64_t* to) HWY_ATTR {
      for (std::int64_t i = 0; i < count; i += 4 * hn::MaxLanes(quads), to += hn::MaxLanes(quads)) {
        const auto x = hn::LoadU(quads, reinterpret_cast<const std::uint64_t*>(from + i));
        const auto outer = hn::And(x, hn::Set(quads, 0xffff00000000ffffu));
        const auto second = hn::And(hn::ShiftLeft<16>(x), hn::Set(quads, 0xffff00000000u));
        const auto third = hn::And(hn::ShiftRight<16>(x), hn::Set(quads, 0xffff0000u));
        hn::StoreU(hn::Or(outer, hn::Or(second, third)), quads, to);
      }
    };
    std::fill_n(shorts_ + padded_entry(dim), 32, std::int16_t{0});
    if constexpr (!kKeysAreInt4) {
      std::fill_n(units, padded_words(call_), 0.0f);
      return swap(shorts_, dim, arranged);
    }
    const std::int64_t half = dim / 2, words = (half + 3) / 4;
    std::uint64_t* const low = arranged;
    std::uint64_t* const high = arranged + (words + 7) / 8 * 8;
    swap(shorts_, half, low);
    swap(shorts_ + half, half, high);
    auto* to = reinterpret_cast<std::uint64_t*>(units);
    for (std::int64_t i = 0; i < words; ++i) {
      *to++ = low[i];
      *to++ = high[i];
    }
    std::fill(reinterpret_cast<float*>(to), units + padded_words(call_), 0.0f);
  }

  // Loads kNumScales scales of each head and position to to + head * 4 ranges, one behind another.
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
      for (int head = 0; head < range.item->num_heads; ++head) {
        float* scales = to + head * 4 * kRangePositions + run.begin;
        for (int s = 0; s < kNumScales; ++s, from += stride, scales += kRangePositions) {
          int i = 0;
          for (; i + kLanes <= run.end - run.begin; i += kLanes) {
            const auto bits = hn::LoadU(shorts, reinterpret_cast<const std::uint16_t*>(from + i));
            hn::StoreU(hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(words, bits))), D(),
                       scales + i);
          }
          for (; i < run.end - run.begin; ++i) scales[i] = to_float(from[i]);
        }
      }
    }
  }

  // Brings `count` sums, as CodeValues leaves them, into the order of dimensions.
  static HWY_INLINE void order_dims(const float* sums, std::int64_t count, float* to) {
    const hn::CappedTag<float, 4> d4;
    for (std::int64_t i = 0; i < count; i += 2 * kLanes, sums += 2 * kLanes) {
      for (int j = 0; j < kLanes; j += 4, to += 8) {
        hn::StoreU(hn::LoadU(d4, sums + j), d4, to);
        hn::StoreU(hn::LoadU(d4, sums + kLanes + j), d4, to + 4);
      }
    }
  }

  const AttentionCall& call_;
  const float width_;
  const std::int64_t entry_floats_;
  float* entry_;          // [entry_floats]
  std::int16_t* shorts_;  // [entry_floats], a query as integers
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
