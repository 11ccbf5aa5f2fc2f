// Code that all kinds of the cpu attention's inner loops share, compiled for each target. A kind
// ("Dots") has the products of queries and keys, the softmax of a row and the weighted sums of
// values. Examples are float_dots-inl.h and bf16_dots-inl.h.
//
// In these two, a score is one chain of multiply-adds over head_dim, from 0, in a lane of its own;
// a dimension's sum is one chain over positions, from 0. So a row's bits do not depend on the rows
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
// The most rows that are multiplied together. Their sums, rows times vectors, fill the registers
// that hold no operands.
constexpr int kMaxRows = kHas32Registers ? 12 : 6;
constexpr int vectors_for(int rows) {
  return rows * 4 <= (kHas32Registers ? 24 : 8) ? 4 : 2;
}

// Whether the queries of a block of rows are interleaved. Those of the largest blocks are, so that
// one pointer serves all rows.
template <int kRows>
constexpr bool kIsInterleaved = kRows == kMaxRows;

template <typename Dots>
struct ScoreArgs {
  const typename Dots::Unit* queries;  // [kRows, row_stride], or [num_units, kRows] if interleaved
  std::int64_t row_stride;
  std::int64_t num_words;     // words of a key in a tile
  const std::uint32_t* tile;  // [num_words, kTilePositions], from the first position to score
  float* scores;              // [kRows, kRangePositions], from that position
  typename Dots::ScoreScales scales;
};

// Returns 2^x for x <= 0, within 2e-7; 0 below 2^-126.
HWY_INLINE V exp2_of(V x) {
  const D d;
  const DWords words;
  // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
  const V shift = hn::Set(d, 12582912.0f);
  const V shifted = hn::Add(x, shift);
  const V f = hn::Sub(x, hn::Sub(shifted, shift));  // at most 0.5 from 0, exact
  // The polynomial of this degree that is 1 at 0 and has the smallest maximum relative error.
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

// The positions that are weighed together by kinds that take a pair of vectors at a time.
constexpr int kWeighed = 2 * kLanes;
inline int weighed_begin(Visible visible) {
  return visible.begin / kWeighed * kWeighed;
}
inline int weighed_end(Visible visible) {
  return (visible.end + kWeighed - 1) / kWeighed * kWeighed;
}

// Returns each lane's largest score. Sets scores that are not seen, in the pairs of vectors that it
// reads, to minus infinity.
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

// The sums of kRows rows, in kVectors vectors each, which stay in registers: float32, or 32-bit
// integers.
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
  // Stores the scores that the kind computes from the sums.
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
  // Computes sums[r][v] += x[r * row_stride] * y[v], in the kind's number format.
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

// Scales of kinds whose elements are the values themselves: none, because a sum is a score.
struct NoScoreScales {
  HWY_INLINE NoScoreScales of_positions(int /*position*/) const { return {}; }
};

// Contiguous bytes, as offsets from the base of a Stream.
struct Run {
  std::int64_t begin;
  std::int64_t end;
};

// Bytes that are prefetched into L1 during other work: one line at a time, because requests for
// memory delay the loads after them.
struct Stream {
  const std::byte* base = nullptr;
  const Run* next = nullptr;
  const Run* last = nullptr;
  const std::byte* at = nullptr;
  const std::byte* end = nullptr;

  bool is_done() const { return at >= end && next == last; }
  // Fetches the next cache line, if there is one.
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

// Prefetches keys and values, interleaved: two streams are read faster than one. Loops keep a Fetch
// in registers.
struct Fetch {
  using Cursor = Fetch&;  // like TileAhead::Cursor; score() does not advance it
  Stream keys;
  Stream values;

  HWY_INLINE void advance() {
    keys.advance();
    values.advance();
  }
};

// Returns whether step i of a loop over the products of kRows rows prefetches lines of a tile. On
// AVX2 a step of a full block is too short for memory to deliver a step's lines, and loads would
// wait. Every fourth step is enough there, because such items have many steps.
template <int kRows>
constexpr bool fetches_at(std::int64_t i) {
  return kLanes != 8 || kRows < kMaxRows || i % 4 == 0;
}

// Computes the scores of kRows queries with vectors_for(kRows) vectors of keys.
template <typename Dots, int kRows>
HWY_INLINE void score(const ScoreArgs<Dots>& args, typename Dots::Ahead& lines) {
  constexpr int kVectors = vectors_for(kRows);
  SumTile<Dots, kRows, kVectors> sums;
  sums.clear();
  const typename Dots::Unit* q = args.queries;
  const std::int64_t row_stride = kIsInterleaved<kRows> ? 1 : args.row_stride;
  // The step from one unit to the next. For one row it is 1 either way.
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

// Positions of a range whose scales are contiguous.
struct ScaleRun {
  int begin;  // position within the range
  int end;
  std::int64_t block;
  std::int64_t offset;  // of the first position, in its block
};

// A range, and what an item sees of it.
struct VisibleRange {
  const AttentionItem* item = nullptr;
  std::int64_t first_position = 0;  // first position of the range
  int begin = 0;                    // of positions that any query sees, counted within the range
  int end = 0;
  std::int64_t* offsets = nullptr;        // [kRangePositions] of the keys' slots, in bytes
  std::int64_t* value_offsets = nullptr;  // of the values' slots; the same array if they are equal
  Run* runs = nullptr;                    // [kRangePositions], entries of all heads of the item
  int num_runs = 0;
  ScaleRun* scale_runs = nullptr;  // [kRangePositions]
  int num_scale_runs = 0;
  bool is_fetched = false;  // as far ahead as FewRows prefetches
};

// The most rows of an item with few rows. Such an item has one query.
constexpr int kMostFewRows = 8;

// Calls visit(rows), with `rows` as a constant. REQUIRES: 1 <= rows <= kMostFewRows.
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

// Returns the first position of the first group that few rows read of a range. Groups are kLanes
// positions, from a multiple of kLanes.
inline int first_group(const VisibleRange& range) {
  return range.begin / kLanes * kLanes;
}

// A kind's code for items of few rows. Without a specialisation (bf16_decode-inl.h) it takes none.
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

// The places of a head's entries: that of position p of a range is at entries + offsets[p].
struct EntryPlaces {
  const std::byte* entries;
  const std::int64_t* offsets;
};

// Returns the places in the cache of the keys, or the values, of one of an item's heads.
inline EntryPlaces cached_keys(const AttentionCall& call, const VisibleRange& range, int head) {
  return {call.keys.elements + (range.item->first_head + head) * call.keys.entry_bytes,
          range.offsets};
}
inline EntryPlaces cached_values(const AttentionCall& call, const VisibleRange& range, int head) {
  return {call.values.elements + (range.item->first_head + head) * call.values.entry_bytes,
          range.value_offsets};
}

// Returns the factor that turns a product of a query and a key into a score. Without a soft cap,
// scores are in units of ln 2.
inline float score_factor(const AttentionCall& call) {
  return call.soft_cap > 0 ? call.scale : call.scale * std::numbers::log2e_v<float>;
}

// PlainCoding is the Coding of kinds whose elements are the values themselves: most functions do
// nothing. `head` is a head of the item. `state` numbers a row among the rows of all its heads,
// `row` in a block of rows.
class PlainCoding {
 public:
  PlainCoding(const AttentionCall& call, const AttentionPlan::Counts& /*counts*/, float* /*memory*/)
      : call_(call) {}
  static std::int64_t floats(const AttentionCall& /*call*/,
                             const AttentionPlan::Counts& /*counts*/) {
    return 0;
  }
  // Returns the bytes of a key from which a tile is made.
  static std::int64_t key_bytes(const AttentionCall& call) { return call.keys.entry_bytes; }
  // Returns a key's words in a tile, padded to whole vectors.
  static std::int64_t padded_words(const AttentionCall& call) {
    return ((key_bytes(call) + 3) / 4 + kLanes - 1) / kLanes * kLanes;
  }
  // Returns the number of floats that prepare() returns, and the factor by which they are
  // multiplied.
  static std::int64_t num_dims(const AttentionCall& call) { return call.head_dim; }
  static float query_factor(const AttentionCall& call) { return score_factor(call); }

  // Returns the query as QueryPacking takes it; valid until the next block of rows.
  const float* prepare(const float* query, int /*row*/, std::int64_t /*state*/) { return query; }
  // Prepares for a range, which is scored next, and then weighed.
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
  // Whether weigh() replaces that of the kind.
  static constexpr bool kWeighs = false;
  void finish_sums(std::int64_t /*state*/, float* /*sums*/) const {}
  // Whether end_row() writes a row of the output.
  static constexpr bool kEndsRows = false;

 private:
  const AttentionCall& call_;
};

// NoSession: the Session of kinds that set up nothing for a worker's thread (tile_dots-inl.h does).
struct NoSession {};

// The parts that are common to kinds whose elements are the values themselves.
struct PlainDots {
  using Session = NoSession;
  // Whether score_rows() and Values::sum_rows() multiply 16 or 32 rows at a time. sum_rows() takes
  // the values of a whole range.
  static constexpr bool kMultipliesTiles = false;
  using Coding = PlainCoding;
  using ScoreScales = NoScoreScales;
  using DSum = D;
  static HWY_INLINE V score_of(V sum, NoScoreScales /*positions*/, NoScoreScales /*rows*/,
                               int /*row*/) {
    return sum;
  }
  // A word of a key becomes one word of a tile.
  static constexpr int kTileWords = 1;
  static HWY_INLINE void store_word(VWords words, std::uint32_t* to) {
    hn::StoreU(words, DWords(), to);
  }
};

// Rows whose weights have been computed. Both pointers are to the first row.
struct WeighedRows {
  const float*
      weights;  // [kRows, kRangePositions], or half as many pairs of bfloat16 in their place
  float* sums;  // [kRows, padded_dim]
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
