// The cpu attention's inner loops, for each target: the products of queries and keys, the softmax
// of a row, the weighted sums of values.
//
// A score is one chain of fused multiply-adds over head_dim, from 0, in a lane of its own; a
// dimension's sum is one chain over positions, from 0. So a row's bits do not depend on the rows
// that share its loads.
#if defined(PAGODA_ATTENTION_KERNELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_ATTENTION_KERNELS_INL_H
#undef PAGODA_ATTENTION_KERNELS_INL_H
#else
#define PAGODA_ATTENTION_KERNELS_INL_H
#endif

#include <algorithm>
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "ops/attention/attention_items.h"
#include "ops/attention/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr bool kHas32Registers = kLanes == 16 || HWY_ARCH_ARM_A64;
// Rows that are multiplied together. Rows times vectors fill the registers with sums, less those
// that hold the operands.
constexpr int kMaxRows = kHas32Registers ? 12 : 6;
constexpr int vectors_for(int rows) {
  return rows * 4 <= (kHas32Registers ? 24 : 8) ? 4 : 2;
}

// Rows lie side by side where there are as many as can be, so that one pointer serves them all.
template <int kRows>
constexpr bool kIsInterleaved = kRows == kMaxRows;

struct ScoreArgs {
  const float* queries;  // [kRows, row_stride], or [head_dim, kRows] where interleaved
  std::int64_t row_stride;
  std::int64_t num_words;     // of a key
  const std::uint32_t* tile;  // [num_words, kTilePositions] from the first position wanted
  float* scores;              // [kRows, kRangePositions] likewise
};

// The products of kRows queries and vectors_for(kRows) vectors of keys.
template <typename T, int kRows>
HWY_INLINE void score(const ScoreArgs& args) {
  constexpr int kVectors = vectors_for(kRows);
  constexpr int kElements = Words<T>::kElements;
  const D d;
  V sums[kRows][kVectors];
  PAGODA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const float* q = args.queries;
  const std::int64_t row_stride = kIsInterleaved<kRows> ? 1 : args.row_stride;
  // From one dimension to the next; for one row the same either way.
  constexpr int kStep = kIsInterleaved<kRows> ? kRows : 1;  // NOLINT(bugprone-branch-clone)
  const std::uint32_t* tile = args.tile;
  for (std::int64_t word = 0; word < args.num_words; ++word, tile += kTilePositions) {
    PAGODA_UNROLL
    for (int element = 0; element < kElements; ++element, q += kStep) {
      V key[kVectors];
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const VWords words = hn::LoadU(DWords(), tile + v * kLanes);
        key[v] = element == 0 ? Words<T>::first(words) : Words<T>::second(words);
      }
      PAGODA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const V x = hn::Set(d, q[r * row_stride]);
        PAGODA_UNROLL
        for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(x, key[v], sums[r][v]);
      }
    }
  }
  PAGODA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[r][v], d, args.scores + r * kRangePositions + v * kLanes);
    }
  }
}

// 2^x for x <= 0, within 2e-7; 0 below 2^-126.
HWY_INLINE V exp2_of(V x) {
  const D d;
  const DWords words;
  // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
  const V shift = hn::Set(d, 12582912.0f);
  const V shifted = hn::Add(x, shift);
  const V f = hn::Sub(x, hn::Sub(shifted, shift));  // within a half of 0, exact
  // The polynomial of this degree that is 1 at 0 and has the least largest relative error.
  V power = hn::Set(d, 0.001326472731307149f);
  power = hn::MulAdd(power, f, hn::Set(d, 0.009671512991189957f));
  power = hn::MulAdd(power, f, hn::Set(d, 0.05550733581185341f));
  power = hn::MulAdd(power, f, hn::Set(d, 0.24022242426872253f));
  power = hn::MulAdd(power, f, hn::Set(d, 0.6931470036506653f));
  power = hn::MulAdd(power, f, hn::Set(d, 1.0f));
  const V scaled = hn::BitCast(
      d, hn::Add(hn::BitCast(words, power), hn::ShiftLeft<23>(hn::BitCast(words, shifted))));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), scaled);  // a NaN stays
}

// The positions of a range that a row sees.
struct Visible {
  int begin;
  int end;
};

// Scores (in units of ln 2) to weights under the row's largest; those not seen become 0 or stay
// undefined. Whole vectors are summed in order, so that ones without a weight change nothing.
HWY_INLINE void weigh(float* scores, Visible visible, float& largest, float& total) {
  const D d;
  const int first = visible.begin / kLanes * kLanes;
  const int last = (visible.end - 1) / kLanes * kLanes;
  if (visible.begin != first) {
    const auto seen = hn::Ge(hn::Iota(d, 0), hn::Set(d, static_cast<float>(visible.begin - first)));
    hn::StoreU(hn::IfThenElse(seen, hn::LoadU(d, scores + first), hn::Set(d, kMinusInfinity)), d,
               scores + first);
  }
  if (visible.end != last + kLanes) {
    const auto seen = hn::Lt(hn::Iota(d, 0), hn::Set(d, static_cast<float>(visible.end - last)));
    hn::StoreU(hn::IfThenElse(seen, hn::LoadU(d, scores + last), hn::Set(d, kMinusInfinity)), d,
               scores + last);
  }
  V top = hn::LoadU(d, scores + first);
  for (int i = first + kLanes; i <= last; i += kLanes) top = hn::Max(top, hn::LoadU(d, scores + i));
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

// Bytes that lie together, as offsets from what a Stream reads.
struct Run {
  std::int64_t begin;
  std::int64_t end;
};

// What is fetched into L2 while something else is computed: a line at a time, because requests for
// memory hold up the loads behind them.
struct Stream {
  const std::byte* base = nullptr;
  const Run* next = nullptr;
  const Run* last = nullptr;
  const std::byte* at = nullptr;
  const std::byte* end = nullptr;

  bool is_done() const { return at >= end && next == last; }
  // The next cache line, or none.
  HWY_INLINE void advance() {
    if (HWY_UNLIKELY(at >= end)) {
      if (next == last) return;
      at = base + next->begin;
      end = base + next->end;
      ++next;
    }
    __builtin_prefetch(at, 0, 2);
    at += 64;
  }
};

// Keys and values in turns: two streams are read faster than one. Loops keep it in registers.
struct Fetch {
  Stream keys;
  Stream values;

  HWY_INLINE void advance() {
    keys.advance();
    values.advance();
  }
};

struct ValueArgs {
  const std::byte* values;      // dimension `at` of the entry at offset 0
  const std::int64_t* offsets;  // [kRangePositions], bytes
  const float* weights;         // [kRows, kRangePositions]
  float* sums;                  // [kRows, padded_dim] from dimension `at`
  std::int64_t padded_dim;
};

// sums += the weighted values of positions [begin, end), kVectors vectors of dimensions.
template <typename T, int kRows, int kVectors>
HWY_INLINE void add_values(const ValueArgs& args, int begin, int end, Fetch& fetch_state) {
  const D d;
  Fetch fetch = fetch_state;
  V sums[kRows][kVectors];
  PAGODA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = hn::LoadU(d, args.sums + r * args.padded_dim + v * kLanes);
    }
  }
  for (int p = begin; p < end; ++p) {
    fetch.advance();
    const T* from = reinterpret_cast<const T*>(args.values + args.offsets[p]);
    V value[kVectors];
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; v += 2) {
      ValuePair<T>::load(from + v * kLanes, value[v], value[v + 1]);
    }
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const V weight = hn::Set(d, args.weights[r * kRangePositions + p]);
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(weight, value[v], sums[r][v]);
    }
  }
  fetch_state = fetch;
  PAGODA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[r][v], d, args.sums + r * args.padded_dim + v * kLanes);
    }
  }
}

template <typename T, int kRows>
HWY_INLINE void add_values(ValueArgs args, int begin, int end, Fetch& fetch) {
  if (begin >= end) return;
  const auto advance = [&](int vectors) {
    args.values += static_cast<std::int64_t>(vectors * kLanes * sizeof(T));
    args.sums += vectors * kLanes;
  };
  std::int64_t left = args.padded_dim / kLanes;
  for (; vectors_for(kRows) == 4 && left >= 4; left -= 4, advance(4)) {
    add_values<T, kRows, 4>(args, begin, end, fetch);
  }
  for (; left > 0; left -= 2, advance(2)) add_values<T, kRows, 2>(args, begin, end, fetch);
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
