// Code that the cpu attention's kinds of inner loops share, for each target. A kind ("dots") has
// the products of queries and keys, the softmax of a row and the weighted sums of values:
// float_dots-inl.h and bf16_dots-inl.h.
//
// In each, a score is one chain of multiply-adds over head_dim, from 0, in a lane of its own; a
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
#include <numbers>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "ops/attention/cpu/attention_items.h"
#include "ops/attention/cpu/attention_target-inl.h"
#include "ops/attention/cpu/tile_ahead.h"
#include "ops/attention/cpu/transpose-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
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

template <typename Dots>
struct ScoreArgs {
  const typename Dots::Unit* queries;  // [kRows, row_stride], or [num_units, kRows] if interleaved
  std::int64_t row_stride;
  std::int64_t num_words;     // of a key
  const std::uint32_t* tile;  // [num_words, kTilePositions] from the first position wanted
  float* scores;              // [kRows, kRangePositions] likewise
  typename Dots::ScoreScales scales;
};

// Returns 2^x for x <= 0, within 2e-7; 0 below 2^-126.
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

// Positions that are weighed together, where rows are by pairs of vectors.
constexpr int kWeighed = 2 * kLanes;
inline int weighed_begin(Visible visible) {
  return visible.begin / kWeighed * kWeighed;
}
inline int weighed_end(Visible visible) {
  return (visible.end + kWeighed - 1) / kWeighed * kWeighed;
}

// Returns each lane's largest score; what is not seen of a pair of vectors becomes minus
// infinity.
HWY_INLINE V largest_score(float* scores, Visible visible) {
  const D d;
  const V none = hn::Set(d, kMinusInfinity);
  if (visible.begin >= visible.end) return none;
  const int begin = weighed_begin(visible), end = weighed_end(visible);
  for (const int at : {begin, begin + kLanes, end - kWeighed, end - kLanes}) {
    if (at >= visible.begin && at + kLanes <= visible.end) continue;
    const V position = hn::Iota(d, static_cast<float>(at));
    const auto seen = hn::And(hn::Ge(position, hn::Set(d, static_cast<float>(visible.begin))),
                              hn::Lt(position, hn::Set(d, static_cast<float>(visible.end))));
    hn::StoreU(hn::IfThenElse(seen, hn::LoadU(d, scores + at), none), d, scores + at);
  }
  V top = hn::LoadU(d, scores + begin), top2 = hn::LoadU(d, scores + begin + kLanes);
  for (int i = begin + kWeighed; i < end; i += kWeighed) {
    top = hn::Max(top, hn::LoadU(d, scores + i));
    top2 = hn::Max(top2, hn::LoadU(d, scores + i + kLanes));
  }
  return hn::Max(top, top2);
}

// Sums of kRows rows in kVectors vectors, which stay in registers; of float32, or of 32-bit integers.
template <typename Dots, int kRows, int kVectors>
struct SumTile {
  using DSum = typename Dots::DSum;
  hn::Vec<DSum> sums[kRows][kVectors];

  HWY_INLINE void clear() {
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(DSum());
    }
  }
  HWY_INLINE void load(const float* from, std::int64_t row_stride) {
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::BitCast(DSum(), hn::LoadU(D(), from + r * row_stride + v * kLanes));
      }
    }
  }
  HWY_INLINE void store(float* to, std::int64_t row_stride) const {
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        hn::StoreU(hn::BitCast(D(), sums[r][v]), D(), to + r * row_stride + v * kLanes);
      }
    }
  }
  // Stores what the kind makes of sums as scores.
  HWY_INLINE void store_scores(float* to, const typename Dots::ScoreScales& scales) const {
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const auto factors = scales.of_positions(v * kLanes);
      PAGODA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        hn::StoreU(Dots::score_of(sums[r][v], factors, scales, r), D(),
                   to + r * kRangePositions + v * kLanes);
      }
    }
  }
  // Computes sums[r][v] += x[r * row_stride] * y[v], in the kind's own numbers.
  HWY_INLINE void add(const typename Dots::Unit* x, std::int64_t row_stride,
                      const typename Dots::Operand* y) {
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const typename Dots::Operand factor = Dots::broadcast(x[r * row_stride]);
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] = Dots::multiply(sums[r][v], factor, y[v]);
    }
  }
};

// Nothing turns a sum into a score where elements are the values themselves.
struct NoScoreScales {
  HWY_INLINE NoScoreScales of_positions(int /*position*/) const { return {}; }
};

// Bytes that lie together, as offsets from what a Stream reads.
struct Run {
  std::int64_t begin;
  std::int64_t end;
};

// Bytes that are fetched into L1 while something else is computed: a line at a time, because
// requests for memory hold up the loads behind them.
struct Stream {
  const std::byte* base = nullptr;
  const Run* next = nullptr;
  const Run* last = nullptr;
  const std::byte* at = nullptr;
  const std::byte* end = nullptr;

  bool is_done() const { return at >= end && next == last; }
  // Fetches the next cache line, or none.
  HWY_INLINE void advance() {
    if (HWY_UNLIKELY(at >= end)) {
      if (next == last) return;
      at = base + next->begin;
      end = base + next->end;
      ++next;
    }
    __builtin_prefetch(at, 0, 3);
    at += 64;
  }
};

// Keys and values, interleaved: two streams are read faster than one. Loops keep it in registers.
struct Fetch {
  using Cursor = Fetch&;  // as TileAhead has one; nothing is fetched by it among scores
  Stream keys;
  Stream values;

  HWY_INLINE void advance() {
    keys.advance();
    values.advance();
  }
};

// Returns whether the i-th step of a loop over the products of kRows rows has a tile fetched.
// AVX2's blocks of rows are over so soon that memory cannot bring a step's lines in a step's time,
// and loads would wait. Every fourth step is enough there, as their items have many steps.
template <int kRows>
constexpr bool fetches_at(std::int64_t i) {
  return kLanes != 8 || kRows < kMaxRows || i % 4 == 0;
}

// Computes the products of kRows queries and vectors_for(kRows) vectors of keys.
template <typename Dots, int kRows>
HWY_INLINE void score(const ScoreArgs<Dots>& args, typename Dots::Ahead& lines) {
  constexpr int kVectors = vectors_for(kRows);
  SumTile<Dots, kRows, kVectors> sums;
  sums.clear();
  const typename Dots::Unit* q = args.queries;
  const std::int64_t row_stride = kIsInterleaved<kRows> ? 1 : args.row_stride;
  // From one unit to the next; for one row the same either way.
  constexpr int kStep = kIsInterleaved<kRows> ? kRows : 1;  // NOLINT(bugprone-branch-clone)
  const std::uint32_t* tile = args.tile;
  [[maybe_unused]] typename Dots::Ahead::Cursor ahead(lines);
  for (std::int64_t word = 0; word < args.num_words; ++word, tile += kTilePositions) {
    if constexpr (Dots::kFetchesTiles) {
      if (fetches_at<kRows>(word)) ahead.advance();
    }
    PAGODA_UNROLL
    for (int unit = 0; unit < Dots::kUnitsPerWord; ++unit, q += kStep) {
      typename Dots::Operand key[kVectors];
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        key[v] = Dots::operand(hn::LoadU(DWords(), tile + v * kLanes), unit);
      }
      sums.add(q, row_stride, key);
    }
  }
  sums.store_scores(args.scores, args.scales);
}

// Positions of a range whose scales lie together.
struct ScaleRun {
  int begin;  // within the range
  int end;
  std::int64_t block;
  std::int64_t offset;  // of the first one in its block
};

// A range as an item sees it.
struct VisibleRange {
  const AttentionItem* item = nullptr;
  std::int64_t first_position = 0;  // of the range
  int begin = 0;                    // of the positions that any query sees, within the range
  int end = 0;
  std::int64_t* offsets = nullptr;        // [kRangePositions] of their keys' slots, bytes
  std::int64_t* value_offsets = nullptr;  // of their values'; the same array where they are equal
  Run* runs = nullptr;  // [kRangePositions] of their entries of all heads of the item
  int num_runs = 0;
  ScaleRun* scale_runs = nullptr;  // [kRangePositions]
  int num_scale_runs = 0;
  bool is_fetched = false;  // as far as FewRows fetches ahead
};

// Rows of an item that has few of them: those of one query, at most so many.
constexpr int kMostFewRows = 8;

// Calls visit(rows), a constant. REQUIRES: 1 <= rows <= kMostFewRows.
template <typename Visit>
void for_few_rows(int rows, Visit&& visit) {
  switch (rows) {
    case 1:
      return visit(std::integral_constant<int, 1>());
    case 2:
      return visit(std::integral_constant<int, 2>());
    case 3:
      return visit(std::integral_constant<int, 3>());
    case 4:
      return visit(std::integral_constant<int, 4>());
    case 5:
      return visit(std::integral_constant<int, 5>());
    case 6:
      return visit(std::integral_constant<int, 6>());
    case 7:
      return visit(std::integral_constant<int, 7>());
    default:
      return visit(std::integral_constant<int, 8>());
  }
}

// Returns the first position of those that few rows read together where a range begins: kLanes from a
// multiple of it on.
inline int first_group(const VisibleRange& range) {
  return range.begin / kLanes * kLanes;
}

// How a kind of products goes about items of few rows: no way of its own (bf16_decode-inl.h has).
template <typename Dots>
struct FewRows {
  FewRows(const AttentionCall& /*call*/, std::byte* /*copies*/) {}
  static bool takes(const AttentionCall& /*call*/, const AttentionItem& /*item*/) { return false; }
  void fetch_first(const VisibleRange& /*range*/) {}
  void begin(const VisibleRange& /*range*/, const VisibleRange& /*after*/) {}
  void score(const VisibleRange& /*range*/, const typename Dots::Unit* /*queries*/,
             const typename Dots::Coding& /*coding*/, float* /*scores*/) {}
  void add(const VisibleRange& /*range*/, const float* /*weights*/, float* /*softmaxes*/) {}
};

// Places of a head's entries: that of position p of a range lies at entries + offsets[p].
struct EntryPlaces {
  const std::byte* entries;
  const std::int64_t* offsets;
};

// Returns where the keys, or the values, of one of an item's heads lie in the cache.
inline EntryPlaces cached_keys(const AttentionCall& call, const VisibleRange& range, int head) {
  return {call.keys.elements + (range.item->first_head + head) * call.keys.entry_bytes,
          range.offsets};
}
inline EntryPlaces cached_values(const AttentionCall& call, const VisibleRange& range, int head) {
  return {call.values.elements + (range.item->first_head + head) * call.values.entry_bytes,
          range.value_offsets};
}

// Returns what turns a product of a query and a key into a score: in units of ln 2, but for a soft
// cap.
inline float score_factor(const AttentionCall& call) {
  return call.soft_cap > 0 ? call.scale : call.scale * std::numbers::log2e_v<float>;
}

// PlainCoding stands for what a kind knows of codes, where elements are the values themselves:
// nothing. `head` is one of the item's; `state` is the number of a row among those of all its heads,
// `row` that in a block of rows.
class PlainCoding {
 public:
  PlainCoding(const AttentionCall& call, const AttentionPlan::Counts& /*counts*/, float* /*memory*/)
      : call_(call) {}
  static std::int64_t floats(const AttentionCall& /*call*/,
                             const AttentionPlan::Counts& /*counts*/) {
    return 0;
  }
  // Returns the bytes of a key as tiles are made of it.
  static std::int64_t key_bytes(const AttentionCall& call) { return call.keys.entry_bytes; }
  // Returns a key's words in a tile, padded to whole vectors.
  static std::int64_t padded_words(const AttentionCall& call) {
    return ((key_bytes(call) + 3) / 4 + kLanes - 1) / kLanes * kLanes;
  }
  // Returns the floats of a query as prepare() leaves it, and what they are multiplied by.
  static std::int64_t num_dims(const AttentionCall& call) { return call.head_dim; }
  static float query_factor(const AttentionCall& call) { return score_factor(call); }

  // Returns the query as QueryPacking takes it, until the next block of rows.
  const float* prepare(const float* query, int /*row*/, std::int64_t /*state*/) { return query; }
  // Gets ready for a range: it is scored next, then weighed.
  void begin(const VisibleRange& /*range*/) {}
  EntryPlaces keys(const VisibleRange& range, int head, int /*tile*/) const {
    return cached_keys(call_, range, head);
  }
  EntryPlaces values(const VisibleRange& range, int head, int /*tile*/) const {
    return cached_values(call_, range, head);
  }
  NoScoreScales score_scales(int /*head*/, std::int64_t /*state*/, int /*position*/) const {
    return {};
  }
  // Whether weigh() takes the place of the kind's.
  static constexpr bool kWeighs = false;
  void finish_sums(std::int64_t /*state*/, float* /*sums*/) const {}
  // Whether end_row() writes a row of the output.
  static constexpr bool kEndsRows = false;

 private:
  const AttentionCall& call_;
};

// NoSession stands for what a kind sets up for its thread while a worker lives: nothing
// (tile_dots-inl.h does).
struct NoSession {};

// Things that kinds have in common whose elements are the values themselves.
struct PlainDots {
  using Session = NoSession;
  // Whether 16 or 32 rows are multiplied at a time, by score_rows() and Values::sum_rows(), which takes
  // the values of a whole range.
  static constexpr bool kMultipliesTiles = false;
  using Coding = PlainCoding;
  using ScoreScales = NoScoreScales;
  using DSum = D;
  static HWY_INLINE V score_of(V sum, NoScoreScales /*positions*/, NoScoreScales /*rows*/,
                               int /*row*/) {
    return sum;
  }
  // A word of a key is one of a tile.
  static constexpr int kTileWords = 1;
  static HWY_INLINE void store_word(VWords words, std::uint32_t* to) {
    hn::StoreU(words, DWords(), to);
  }
};

// Rows whose weights are known, from the first of them.
struct WeighedRows {
  const float*
      weights;  // [kRows, kRangePositions], or half as many pairs of bfloat16 in their place
  float* sums;  // [kRows, padded_dim]
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
