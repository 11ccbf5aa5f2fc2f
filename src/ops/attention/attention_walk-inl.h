// The cpu attention's walk over the tiles of one item, for each target (attention_items.h says what
// an item is).
//
// A tile is loaded once for all queries of the item and every head that reads it: keys transposed,
// so that a score is one chain over head_dim in a lane of its own, and values widened, so that an
// output is one chain over positions. Every query takes the same operations whoever shares the
// tile, and never touches a position that it may not see.
#if defined(PAGODA_ATTENTION_WALK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_ATTENTION_WALK_INL_H
#undef PAGODA_ATTENTION_WALK_INL_H
#else
#define PAGODA_ATTENTION_WALK_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "hwy/cache_control.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "ops/attention/attention_items.h"
#include "ops/attention/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kTileVectors = kTilePositions / kLanes;
// Rows of queries scored together: eight sums in registers.
constexpr int kRowsAtOnce = kTileVectors >= 8 ? 1 : 8 / kTileVectors;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// A softmax under way: sums of weighted values, all under the weight exp(-largest).
struct Softmax {
  float* sums;     // [rows, padded_dim]
  float* largest;  // [rows]
  float* totals;   // [rows]
};

// Scratch is the calling thread's own: walk_floats() of it.
template <typename T>
class Walk {
 public:
  Walk(const AttentionItem& item, float* scratch)
      : item_(item),
        rows_(item.num_queries * item.group),
        padded_dim_((item.head_dim + kLanes - 1) / kLanes * kLanes) {
    const auto take = [&scratch](std::int64_t count) {
      return std::exchange(scratch, scratch + count);
    };
    keys_ = take(item.head_dim * kTilePositions);
    values_ = take(kTilePositions * padded_dim_);
    zeros_ = reinterpret_cast<T*>(take(item.head_dim));
    queries_ = take(rows_ * item.head_dim);
    weights_ = take(rows_ * kTilePositions);
    range_ = {.sums = take(rows_ * padded_dim_), .largest = take(rows_), .totals = take(rows_)};
    merged_ = {.sums = take(rows_ * padded_dim_), .largest = take(rows_), .totals = take(rows_)};
  }

  void run() {
    std::fill_n(zeros_, item_.head_dim, T{});
    for (int r = 0; r < rows_; ++r) {
      const float* q =
          item_.q + r / item_.group * item_.token_stride + r % item_.group * item_.head_stride;
      std::copy_n(q, item_.head_dim, queries_ + r * item_.head_dim);
    }
    if (!item_.partials) start_merge();
    for (std::int64_t range = item_.first_range; range <= item_.last_range; ++range) {
      walk_range(range);
      if (!item_.partials) merge(range_);
    }
    item_.partials ? store_partials() : finish();
  }

  // Merges the ranges that other walks of this item have left in its partials.
  void merge_partials() {
    start_merge();
    const float* from = item_.partials;
    for (std::int64_t range = item_.first_range; range <= item_.last_range; ++range) {
      for (int r = 0; r < rows_; ++r, from += item_.head_dim + 2) {
        std::fill_n(range_.sums + r * padded_dim_, padded_dim_, 0.0f);
        std::copy_n(from, item_.head_dim, range_.sums + r * padded_dim_);
        range_.largest[r] = from[item_.head_dim];
        range_.totals[r] = from[item_.head_dim + 1];
      }
      merge(range_);
    }
    finish();
  }

 private:
  void walk_range(std::int64_t range) {
    std::fill_n(range_.sums, rows_ * padded_dim_, 0.0f);
    std::fill_n(range_.largest, rows_, kMinusInfinity);
    std::fill_n(range_.totals, rows_, 0.0f);
    const std::int64_t begin =
        std::max(first_visible(item_.first_position, item_.window), range * kRangePositions);
    const std::int64_t end =
        std::min(item_.first_position + item_.num_queries, (range + 1) * kRangePositions);
    prefetch(begin, std::min(end, (begin / kTilePositions + 1) * kTilePositions));
    for (std::int64_t tile = begin / kTilePositions; tile * kTilePositions < end; ++tile) {
      const std::int64_t at = tile * kTilePositions;
      load(at, std::max(begin, at), std::min(end, at + kTilePositions));
      prefetch(at + kTilePositions, std::min(end, at + 2 * kTilePositions));
      attend(at);
    }
  }

  // A sink is a key that weighs exp(sink) and has no value.
  void start_merge() {
    std::fill_n(merged_.sums, rows_ * padded_dim_, 0.0f);
    for (int r = 0; r < rows_; ++r) {
      merged_.largest[r] = item_.sinks ? item_.sinks[r % item_.group] : kMinusInfinity;
      merged_.totals[r] = item_.sinks ? 1.0f : 0.0f;
    }
  }

  void merge(const Softmax& range) {
    const D d;
    for (int r = 0; r < rows_; ++r) {
      if (range.totals[r] == 0) continue;  // the row sees nothing of the range
      const float largest = std::max(merged_.largest[r], range.largest[r]);
      const float kept = std::exp(merged_.largest[r] - largest);
      const float added = std::exp(range.largest[r] - largest);
      merged_.largest[r] = largest;
      merged_.totals[r] = merged_.totals[r] * kept + range.totals[r] * added;
      float* to = merged_.sums + r * padded_dim_;
      const float* from = range.sums + r * padded_dim_;
      for (std::int64_t i = 0; i < padded_dim_; i += kLanes) {
        const V old = hn::Mul(hn::LoadU(d, to + i), hn::Set(d, kept));
        hn::StoreU(hn::MulAdd(hn::LoadU(d, from + i), hn::Set(d, added), old), d, to + i);
      }
    }
  }

  void finish() {
    for (int r = 0; r < rows_; ++r) {
      float* out =
          item_.out + r / item_.group * item_.out_token_stride + r % item_.group * item_.head_dim;
      const float* sums = merged_.sums + r * padded_dim_;
      for (std::int64_t d = 0; d < item_.head_dim; ++d) out[d] = sums[d] / merged_.totals[r];
    }
  }

  void store_partials() {
    float* to = item_.partials;
    for (int r = 0; r < rows_; ++r, to += item_.head_dim + 2) {
      std::copy_n(range_.sums + r * padded_dim_, item_.head_dim, to);
      to[item_.head_dim] = range_.largest[r];
      to[item_.head_dim + 1] = range_.totals[r];
    }
  }

  // Calls visit(p, key, value) with the entries of positions [begin, end).
  template <typename Visit>
  HWY_INLINE void for_each_entry(std::int64_t begin, std::int64_t end, Visit&& visit) const {
    std::int64_t block = begin / item_.block_size;
    std::int64_t offset = begin % item_.block_size;
    for (std::int64_t p = begin; p < end; ++block, offset = 0) {
      const std::int64_t slot = item_.blocks[block] * item_.block_size + offset;
      const std::byte* key = item_.keys + slot * item_.slot_stride;
      const std::byte* value = item_.values + slot * item_.slot_stride;
      const std::int64_t stop = std::min(end, p + item_.block_size - offset);
      for (; p < stop; ++p, key += item_.slot_stride, value += item_.slot_stride) {
        visit(p, reinterpret_cast<const T*>(key), reinterpret_cast<const T*>(value));
      }
    }
  }

  // Positions [begin, end) of the tile at `at`; the others' keys are zero, and their values are
  // never read.
  void load(std::int64_t at, std::int64_t begin, std::int64_t end) {
    const T* keys[kTilePositions];
    std::fill_n(keys, kTilePositions, zeros_);
    for_each_entry(begin, end, [&](std::int64_t p, const T* key, const T* value) {
      keys[p - at] = key;
      widen(value, values_ + (p - at) * padded_dim_);
    });
    transpose_tile(keys, item_.head_dim, keys_);
  }

  // Entries of one head lie far apart in blocks in no order, which no hardware foresees: ask for
  // [begin, end) a tile ahead.
  void prefetch(std::int64_t begin, std::int64_t end) const {
    constexpr std::int64_t kLineElements = 64 / sizeof(T);
    for_each_entry(begin, end, [&](std::int64_t, const T* key, const T* value) {
      for (std::int64_t d = 0; d < item_.head_dim; d += kLineElements) {
        hwy::Prefetch(key + d);
        hwy::Prefetch(value + d);
      }
    });
  }

  HWY_INLINE void widen(const T* from, float* to) const {
    std::int64_t d = 0;
    for (; d + kLanes <= item_.head_dim; d += kLanes)
      hn::StoreU(load_wide(D(), from + d), D(), to + d);
    for (; d < item_.head_dim; ++d) to[d] = to_float(from[d]);
    for (; d < padded_dim_; ++d) to[d] = 0;
  }

  // The tile's positions that row r sees, from the tile's begin.
  struct Visible {
    int begin;
    int end;
  };
  Visible visible(int r, std::int64_t at) const {
    const std::int64_t position = item_.first_position + r / item_.group;
    return {static_cast<int>(std::max<std::int64_t>(first_visible(position, item_.window) - at, 0)),
            static_cast<int>(std::min<std::int64_t>(position + 1 - at, kTilePositions))};
  }

  void attend(std::int64_t at) {
    const auto is_masked = [&](int r) {
      const Visible range = visible(r, at);
      return range.begin >= range.end;
    };
    // Rows that see anything of a tile follow one another: positions ascend.
    int first = 0, last = rows_;
    while (first < last && is_masked(first)) ++first;
    while (first < last && is_masked(last - 1)) --last;
    int r = first;
    for (; r + kRowsAtOnce <= last; r += kRowsAtOnce) score<kRowsAtOnce>(r);
    if (kRowsAtOnce > 3 && last - r == 3) {  // the group of many models: a decode's only rows
      score<3>(r);
      r += 3;
    }
    for (; r < last; ++r) score<1>(r);
    for (r = first; r < last; ++r) {
      const Visible range = visible(r, at);
      weigh(r, range);
      add_values(r, range);
    }
  }

  // weights_ of kRows rows: the products of query and keys.
  template <int kRows>
  HWY_INLINE void score(int row) {
    V sums[kRows][kTileVectors];
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kTileVectors; ++v) sums[r][v] = hn::Zero(D());
    }
    const float* q = queries_ + row * item_.head_dim;
    for (std::int64_t d = 0; d < item_.head_dim; ++d) {
      const float* keys = keys_ + d * kTilePositions;
      V key[kTileVectors];
      PAGODA_UNROLL
      for (int v = 0; v < kTileVectors; ++v) key[v] = hn::LoadU(D(), keys + v * kLanes);
      PAGODA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const V x = hn::Set(D(), q[r * item_.head_dim + d]);
        PAGODA_UNROLL
        for (int v = 0; v < kTileVectors; ++v) sums[r][v] = hn::MulAdd(x, key[v], sums[r][v]);
      }
    }
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kTileVectors; ++v) {
        hn::StoreU(sums[r][v], D(), weights_ + (row + r) * kTilePositions + v * kLanes);
      }
    }
  }

  // Scores to softmax weights under the row's new maximum; what was summed under the old one is
  // scaled down.
  void weigh(int r, Visible range) {
    const D d;
    float* weights = weights_ + r * kTilePositions;
    V scores[kTileVectors];
    hn::Mask<D> seen[kTileVectors];
    V top = hn::Set(d, kMinusInfinity);
    PAGODA_UNROLL
    for (int v = 0; v < kTileVectors; ++v) {
      const V at = hn::Iota(d, static_cast<float>(v * kLanes));
      seen[v] = hn::And(hn::Ge(at, hn::Set(d, static_cast<float>(range.begin))),
                        hn::Lt(at, hn::Set(d, static_cast<float>(range.end))));
      const V score = capped(hn::Mul(hn::LoadU(d, weights + v * kLanes), hn::Set(d, item_.scale)));
      scores[v] = hn::IfThenElse(seen[v], score, hn::Set(d, kMinusInfinity));
      top = hn::Max(top, scores[v]);
    }
    const float old = range_.largest[r];
    const float largest = std::max(old, hn::GetLane(hn::MaxOfLanes(d, top)));
    V total = hn::Zero(d);
    PAGODA_UNROLL
    for (int v = 0; v < kTileVectors; ++v) {
      const V weight = hn::Exp(d, hn::Sub(scores[v], hn::Set(d, largest)));
      const V seen_weight = hn::IfThenElseZero(seen[v], weight);
      hn::StoreU(seen_weight, d, weights + v * kLanes);
      total = hn::Add(total, seen_weight);
    }
    const float kept = old == largest ? 1.0f : std::exp(old - largest);
    range_.totals[r] = range_.totals[r] * kept + hn::GetLane(hn::SumOfLanes(d, total));
    range_.largest[r] = largest;
    if (kept == 1.0f) return;
    float* sums = range_.sums + r * padded_dim_;
    for (std::int64_t i = 0; i < padded_dim_; i += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(d, sums + i), hn::Set(d, kept)), d, sums + i);
    }
  }

  HWY_INLINE V capped(V score) const {
    if (item_.soft_cap == 0) return score;
    const V cap = hn::Set(D(), item_.soft_cap);
    return hn::Mul(cap, hn::Tanh(D(), hn::Div(score, cap)));
  }

  void add_values(int r, Visible range) {
    std::int64_t d = 0;
    for (; d + 4 * kLanes <= padded_dim_; d += 4 * kLanes) add_values<4>(r, range, d);
    for (; d < padded_dim_; d += kLanes) add_values<1>(r, range, d);
  }

  template <int kCount>
  HWY_INLINE void add_values(int r, Visible range, std::int64_t at) {
    const D d;
    float* to = range_.sums + r * padded_dim_ + at;
    const float* weights = weights_ + r * kTilePositions;
    V sums[kCount];
    PAGODA_UNROLL
    for (int v = 0; v < kCount; ++v) sums[v] = hn::LoadU(d, to + v * kLanes);
    for (int j = range.begin; j < range.end; ++j) {
      const float* values = values_ + j * padded_dim_ + at;
      const V weight = hn::Set(d, weights[j]);
      PAGODA_UNROLL
      for (int v = 0; v < kCount; ++v) {
        sums[v] = hn::MulAdd(weight, hn::LoadU(d, values + v * kLanes), sums[v]);
      }
    }
    PAGODA_UNROLL
    for (int v = 0; v < kCount; ++v) hn::StoreU(sums[v], d, to + v * kLanes);
  }

  const AttentionItem& item_;
  const int rows_;  // queries times heads, the heads of a query side by side
  const std::int64_t padded_dim_;
  float* keys_;     // [head_dim, 32]
  float* values_;   // [32, padded_dim]
  T* zeros_;        // [head_dim]: the key of a position that is not loaded
  float* queries_;  // [rows, head_dim]
  float* weights_;  // [rows, 32]
  Softmax range_;   // of the range under way
  Softmax merged_;  // of the ranges before it
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
