// The cpu attention's inner loops in float32, for each target and type of entries: fused
// multiply-adds, on entries widened in registers.
#if defined(PAGODA_FLOAT_DOTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_FLOAT_DOTS_INL_H
#undef PAGODA_FLOAT_DOTS_INL_H
#else
#define PAGODA_FLOAT_DOTS_INL_H
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_kernels-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Loads two vectors of values, and stores two vectors of sums of such values. The order of
// dimensions within the two vectors depends on the type.
template <typename T>
struct ValuePair {
  static HWY_INLINE void load(const T* from, V& first, V& second) {
    const VWords words = hn::LoadU(DWords(), reinterpret_cast<const std::uint32_t*>(from));
    first = Words<T>::first(words);
    second = Words<T>::second(words);
  }
  static HWY_INLINE void store(V first, V second, float* to) {
    hn::StoreInterleaved2(first, second, D(), to);
  }
};

template <>
struct ValuePair<float> {
  static HWY_INLINE void load(const float* from, V& first, V& second) {
    first = hn::LoadU(D(), from);
    second = hn::LoadU(D(), from + kLanes);
  }
  static HWY_INLINE void store(V first, V second, float* to) {
    hn::StoreU(first, D(), to);
    hn::StoreU(second, D(), to + kLanes);
  }
};

template <typename T>
struct FloatDots : PlainDots {
  using Entry = T;
  using Unit = float;  // a unit of a query: a dimension
  static constexpr int kDimsPerUnit = 1;
  static constexpr int kUnitsPerWord = Words<T>::kElements;
  // Prefetches a range ahead, during transposing and sums.
  using Ahead = Fetch;
  static constexpr bool kFetchesRuns = true;
  static constexpr bool kFetchesTiles = false;
  // Consecutive positions that are weighed together.
  static constexpr int kPositions = 1;

  // Loads four units from four dimensions.
  static HWY_INLINE auto load_units(const float* q, float factor) {
    const hn::CappedTag<float, 4> d4;
    return hn::Mul(hn::LoadU(d4, q), hn::Set(d4, factor));
  }
  // Returns the unit of `count` dimensions, at most kDimsPerUnit.
  static HWY_INLINE float unit(const float* q, std::int64_t count, float factor) {
    return count > 0 ? *q * factor : 0;
  }

  // The type that is multiplied. operand() returns the elements of one unit from words of keys.
  using Operand = V;
  static HWY_INLINE V operand(VWords words, int unit) {
    return unit == 0 ? Words<T>::first(words) : Words<T>::second(words);
  }
  static HWY_INLINE V broadcast(float x) { return hn::Set(D(), x); }
  static HWY_INLINE V multiply(V sum, V x, V y) { return hn::MulAdd(x, y, sum); }

  // Turns scores (in units of ln 2) of kRows rows into weights relative to each row's largest.
  // Weights of positions that are not seen become 0 or stay undefined.
  template <int kRows>
  static HWY_INLINE void weigh(float* scores, const Visible* visible, float* largest,
                               float* totals) {
    for (int r = 0; r < kRows; ++r) {
      largest[r] = kMinusInfinity;
      totals[r] = 0;
      if (visible[r].begin >= visible[r].end) continue;
      weigh_row(scores + r * kRangePositions, visible[r], largest[r], totals[r]);
    }
  }
  // Weighs a row. Whole vectors are summed in order, so that vectors without a weight change
  // nothing.
  static HWY_INLINE void weigh_row(float* scores, Visible visible, float& largest, float& total) {
    const D d;
    const int first = visible.begin / kLanes * kLanes;
    const int last = (visible.end - 1) / kLanes * kLanes;
    if (visible.begin != first) {
      const auto seen =
          hn::Ge(hn::Iota(d, 0), hn::Set(d, static_cast<float>(visible.begin - first)));
      hn::StoreU(hn::IfThenElse(seen, hn::LoadU(d, scores + first), hn::Set(d, kMinusInfinity)), d,
                 scores + first);
    }
    if (visible.end != last + kLanes) {
      const auto seen = hn::Lt(hn::Iota(d, 0), hn::Set(d, static_cast<float>(visible.end - last)));
      hn::StoreU(hn::IfThenElse(seen, hn::LoadU(d, scores + last), hn::Set(d, kMinusInfinity)), d,
                 scores + last);
    }
    V top = hn::LoadU(d, scores + first);
    for (int i = first + kLanes; i <= last; i += kLanes)
      top = hn::Max(top, hn::LoadU(d, scores + i));
    const V most = hn::MaxOfLanes(d, top);
    V sum = hn::Zero(d);
    for (int i = first; i <= last; i += kLanes) {
      const V weight = exp2_of(hn::Sub(hn::LoadU(d, scores + i), most));
      hn::StoreU(weight, d, scores + i);
      sum = hn::Add(sum, weight);
    }
    largest = hn::GetLane(most);
    total = hn::GetLane(hn::SumOfLanes(d, sum));
  }

  // A tile's values of one head, read in place, or copied if an entry is not whole vectors.
  class Values {
   public:
    static std::int64_t floats(const AttentionCall& call) {
      if (!is_copied(call)) return 0;
      return kTilePositions * call.padded_dim() + 2 * kRangePositions;
    }
    Values(const AttentionCall& call, float* memory) : call_(call) {
      if (!is_copied(call)) return;
      copies_ = reinterpret_cast<T*>(memory);
      copy_offsets_ = reinterpret_cast<std::int64_t*>(memory + kTilePositions * call.padded_dim());
      std::fill_n(copies_, kTilePositions * call.padded_dim(), T{});
      for (int p = 0; p < kRangePositions; ++p) {
        copy_offsets_[p] = p % kTilePositions * call.padded_dim() * std::int64_t{sizeof(T)};
      }
    }

    // Loads positions of one tile; the value of position p is at entries + offsets[p].
    void load(const std::byte* entries, const std::int64_t* offsets, Visible positions,
              Fetch& /*fetch*/) {
      if (!copies_) {
        values_ = entries;
        offsets_ = offsets;
        return;
      }
      for (int p = positions.begin; p < positions.end; ++p) {
        std::copy_n(reinterpret_cast<const T*>(entries + offsets[p]), call_.head_dim,
                    copies_ + p % kTilePositions * call_.padded_dim());
      }
      values_ = reinterpret_cast<const std::byte*>(copies_);
      offsets_ = copy_offsets_;
    }

    // Weights of positions that a row does not see are undefined, so their values are never added.
    static constexpr bool kAreFinite = false;
    static constexpr bool are_finite(Visible /*positions*/) { return false; }

    // Adds the weighted values of positions that all rows see to the sums.
    template <int kRows>
    HWY_INLINE void add(const WeighedRows& rows, Visible positions, Fetch& fetch) const {
      if (positions.begin >= positions.end) return;
      ValueArgs args{.values = values_,
                     .offsets = offsets_,
                     .weights = rows.weights,
                     .sums = rows.sums,
                     .padded_dim = call_.padded_dim()};
      const auto advance = [&](int vectors) {
        args.values += static_cast<std::int64_t>(vectors * kLanes * sizeof(T));
        args.sums += vectors * kLanes;
      };
      std::int64_t left = args.padded_dim / kLanes;
      for (; vectors_for(kRows) == 4 && left >= 4; left -= 4, advance(4)) {
        add_values<kRows, 4>(args, positions, fetch);
      }
      for (; left > 0; left -= 2, advance(2)) add_values<kRows, 2>(args, positions, fetch);
    }
    // Does the same for one row and any positions.
    HWY_INLINE void add_one(const WeighedRows& row, Visible positions, Fetch& fetch) const {
      add<1>(row, positions, fetch);
    }

   private:
    struct ValueArgs {
      const std::byte* values;      // dimension `at` of the entry at offset 0
      const std::int64_t* offsets;  // [kRangePositions], bytes
      const float* weights;         // [kRows, kRangePositions]
      float* sums;                  // [kRows, padded_dim] from dimension `at`
      std::int64_t padded_dim;
    };

    static bool is_copied(const AttentionCall& call) { return call.head_dim != call.padded_dim(); }

    // Adds the weighted values of the positions to the sums, in kVectors vectors of dimensions.
    template <int kRows, int kVectors>
    static HWY_INLINE void add_values(const ValueArgs& args, Visible positions,
                                      Fetch& fetch_state) {
      Fetch fetch = fetch_state;
      SumTile<FloatDots, kRows, kVectors> sums;
      sums.load(args.sums, args.padded_dim);
      for (int p = positions.begin; p < positions.end; ++p) {
        fetch.advance();
        const T* from = reinterpret_cast<const T*>(args.values + args.offsets[p]);
        V value[kVectors];
        PAGODA_UNROLL
        for (int v = 0; v < kVectors; v += 2) {
          ValuePair<T>::load(from + v * kLanes, value[v], value[v + 1]);
        }
        sums.add(args.weights + p, kRangePositions, value);
      }
      fetch_state = fetch;
      sums.store(args.sums, args.padded_dim);
    }

    const AttentionCall& call_;
    T* copies_ = nullptr;  // [kTilePositions, padded_dim]
    std::int64_t* copy_offsets_ = nullptr;
    const std::byte* values_ = nullptr;
    const std::int64_t* offsets_ = nullptr;  // of positions in the range
  };

  static HWY_INLINE void store_pair(V first, V second, float* to) {
    ValuePair<T>::store(first, second, to);
  }
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
