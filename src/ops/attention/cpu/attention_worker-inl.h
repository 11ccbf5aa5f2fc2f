// AttentionWorker: the work of one thread of the cpu attention, compiled for each target. A worker
// takes an item (attention_items.h), and its ranges one at a time. First it transposes the range's
// keys, a tile at a time, and scores all rows. Then it computes the softmax of each row. Last it
// adds weighted values to a few rows at a time: the values of a tile, or by AMX tiles the values of
// the range (tile_dots-inl.h). Meanwhile it prefetches entries (fetch_ahead-inl.h).
#if defined(PAGODA_ATTENTION_WORKER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_ATTENTION_WORKER_INL_H
#undef PAGODA_ATTENTION_WORKER_INL_H
#else
#define PAGODA_ATTENTION_WORKER_INL_H
#endif

#include <algorithm>
#include <array>
#include <numbers>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_items.h"
#include "ops/attention/cpu/bf16_decode-inl.h"
#include "ops/attention/cpu/bf16_dots-inl.h"
#include "ops/attention/cpu/code_decode-inl.h"
#include "ops/attention/cpu/decoded_dots-inl.h"
#include "ops/attention/cpu/fetch_ahead-inl.h"
#include "ops/attention/cpu/float_dots-inl.h"
#include "ops/attention/cpu/query_packing-inl.h"
#include "ops/attention/cpu/range_places-inl.h"
#include "ops/attention/cpu/softmax_merge-inl.h"
#include "ops/attention/cpu/tile_dots-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A worker's memory is the calling thread's own, aligned to vectors.
template <typename Dots>
class AttentionWorker {
  using Unit = typename Dots::Unit;
  using Coding = typename Dots::Coding;
  // Whether values that a row does not see always contribute 0.
  static constexpr bool kAddsUnseen = Dots::Values::kAreFinite;
  // The rows past the last one that AMX tiles read and write.
  static constexpr int kRowsBeyond = Dots::kMultipliesTiles ? 15 : 0;

 public:
  AttentionWorker(const AttentionCall& call, const AttentionPlan::Counts& counts,
                  AttentionScratch scratch)
      : AttentionWorker(call, counts, Memory(call, counts, scratch)) {}

  // Returns the floats of scratch that a worker takes.
  static std::int64_t scratch_floats(const AttentionCall& call,
                                     const AttentionPlan::Counts& counts) {
    AttentionScratch scratch;
    Memory(call, counts, scratch);
    return scratch.num_taken();
  }

  void run(AttentionQueue& queue, int thread) {
    const AttentionItem* item = queue.claim(thread);
    if (item) begin(*item);
    while (item) {
      const AttentionItem* after = queue.claim_ahead(thread);
      attend(*item, after);
      item = after;
      if (!item && (item = queue.claim(thread))) begin(*item);
    }
  }

  // Merges the softmaxes that workers have stored in the call's partials for this item's ranges.
  void merge(const AttentionItem& item) {
    const int rows = rows_of(item);
    const std::int64_t floats = Softmax::floats(rows, padded_dim_);
    const Softmax merged = softmax_in(merged_, item, 0);
    start(item);
    for (int range = item.first_range; range <= item.last_range; ++range) {
      const std::int64_t at =
          item.partial + std::int64_t{range - item.first_range} * call_.kv_heads * floats;
      const Softmax partial = Softmax::in(call_.partials + at, rows, padded_dim_);
      merge_softmax(partial, merged, rows, padded_dim_);
    }
    finish(item);
  }

 private:
  // The arrays that a worker takes, in order.
  struct Memory {
    Memory(const AttentionCall& call, const AttentionPlan::Counts& counts,
           AttentionScratch& scratch)
        : coding(scratch.take(Coding::floats(call, counts))),
          values(scratch.take(Dots::Values::floats(call))),
          tile(scratch.take(Coding::padded_words(call) * kTilePositions)) {
      const std::int64_t states = counts.states + kRowsBeyond;
      queries = scratch.take(states * packing_of(call).num_units());
      scores = scratch.take(states * kRangePositions);
      found = scratch.take(counts.found_floats);
      merged = scratch.take(counts.found_floats);
      visible = scratch.take(2 * counts.rows);
      for (float*& range : ranges) range = scratch.take(RangePlaces<Dots>::kFloats);
    }

    float *coding, *values, *tile, *queries, *scores, *found, *merged, *visible;
    std::array<float*, 2> ranges;
  };

  AttentionWorker(const AttentionCall& call, const AttentionPlan::Counts& counts,
                  const Memory& memory)
      : call_(call),
        padded_dim_(call.padded_dim()),
        places_(call),
        coding_(call, counts, memory.coding),
        num_words_((Coding::key_bytes(call) + 3) / 4 * Dots::kTileWords),
        packing_(packing_of(call)),
        values_(call, memory.values),
        tile_(reinterpret_cast<std::uint32_t*>(memory.tile)),
        queries_(reinterpret_cast<Unit*>(memory.queries)),
        scores_(memory.scores),
        found_(memory.found),
        merged_(memory.merged),
        visible_(reinterpret_cast<Visible*>(memory.visible)),
        ahead_(call),
        few_rows_(call, reinterpret_cast<std::byte*>(tile_)) {
    places_.take_memory(current_, memory.ranges[0]);
    places_.take_memory(next_, memory.ranges[1]);
  }

  static QueryPacking<Dots> packing_of(const AttentionCall& call) {
    return {Coding::num_dims(call), Coding::padded_words(call) * Dots::kUnitsPerWord,
            Coding::query_factor(call)};
  }

  bool has_few_rows(const AttentionItem& item) const { return FewRows<Dots>::takes(call_, item); }

  // Prefetches the item's first range, which no earlier range has prefetched.
  void begin(const AttentionItem& item) {
    places_.place(next_, item, item.first_range);
    if (has_few_rows(item)) return fetch_few(next_);
    ahead_.fetch_first(next_);
  }

  void attend(const AttentionItem& item, const AttentionItem* after) {
    load_queries(item);
    if (item.partial < 0 && call_.sinks) start(item);
    for (std::int64_t range = item.first_range; range <= item.last_range; ++range) {
      std::swap(current_, next_);
      next_.item = nullptr;
      next_.num_runs = 0;
      if (range < item.last_range) {
        places_.place(next_, item, range + 1);
      } else if (after) {
        places_.place(next_, *after, after->first_range);
      }
      see(item, range);
      coding_.begin(current_);
      if (has_few_rows(item)) {
        attend_few(item, range);
      } else {
        attend_many(item, range);
      }
      if (range_ == found_) merge_range(item);
    }
    if (item.partial < 0) finish(item);
  }

  void attend_many(const AttentionItem& item, std::int64_t range) {
    ahead_.begin(next_);
    for (int tile = first_tile(current_); tile < current_.end; tile += kTilePositions) {
      ahead_.fetch_beside_scores(current_, tile);
      score_tile(tile);
    }
    find_place(item, range);
    weigh_rows(item);
    if constexpr (Dots::kMultipliesTiles) {
      add_range();
    } else {
      for (int tile = first_tile(current_); tile < current_.end; tile += kTilePositions) {
        ahead_.fetch_beside_sums(current_, tile, next_);
        add_tile(tile);
      }
    }
    finish_sums(item);
  }

  void fetch_few(VisibleRange& range) {
    few_rows_.fetch_first(range);
    range.is_fetched = true;
  }

  void attend_few(const AttentionItem& item, std::int64_t range) {
    if (!current_.is_fetched) fetch_few(current_);
    few_rows_.begin(current_, next_);
    const bool is_next_few = next_.item && has_few_rows(*next_.item);
    next_.is_fetched = is_next_few;
    few_rows_.score(current_, queries_, coding_, scores_);
    find_place(item, range);
    weigh_rows(item);
    few_rows_.add(current_, scores_, range_);
    finish_sums(item);
    if (next_.item && !is_next_few) ahead_.fetch_first(next_);
  }

  void load_queries(const AttentionItem& item) {
    const int rows = rows_of(item);
    for (int head = 0; head < item.num_heads; ++head) {
      for_each_block(rows, [&](auto count, int row) {
        const float* q[count()];
        for (int r = 0; r < count(); ++r) q[r] = query(item, head, row + r);
        if constexpr (Dots::kFetchesTiles) {
          for (int r = row + count(); r < std::min(row + 2 * count(), rows); ++r) {
            fetch_query(query(item, head, r));
          }
        }
        for (int r = 0; r < count(); ++r) q[r] = coding_.prepare(q[r], r, head * rows + row + r);
        packing_.template pack<count()>(q, queries_ + (head * rows + row) * packing_.num_units());
      });
    }
  }

  const float* query(const AttentionItem& item, int head, int row) const {
    return call_.q + (item.first_token + row / call_.group) * call_.token_stride +
           ((item.first_head + head) * call_.group + row % call_.group) * call_.head_stride;
  }
  void fetch_query(const float* query) const {
    for (std::int64_t i = 0; i < call_.head_dim; i += 16) __builtin_prefetch(query + i);
  }

  // Sets the positions of the range that each row sees. Later queries see later positions.
  void see(const AttentionItem& item, std::int64_t range) {
    const std::int64_t base = range * kRangePositions;
    const auto within = [&](std::int64_t position) {
      return static_cast<int>(std::clamp<std::int64_t>(position - base, 0, kRangePositions));
    };
    Visible* row = visible_;
    for (int query = 0; query < item.num_queries; ++query) {
      const std::int64_t position = item.first_position + query;
      const Visible visible = {within(first_visible(position, call_.window)), within(position + 1)};
      row = std::fill_n(row, call_.group, visible);
    }
  }

  // Calls visit(count, row) for all rows, in blocks as large as possible; `count` is a constant.
  template <typename Visit>
  HWY_INLINE static void for_each_block(int rows, Visit&& visit) {
    int row = 0;
    const auto visit_all = [&](auto count) HWY_ATTR {
      for (; rows - row >= count(); row += count()) visit(count, row);
    };
    visit_all(std::integral_constant<int, kMaxRows>());
    if constexpr (kMaxRows > 6) visit_all(std::integral_constant<int, 6>());
    visit_all(std::integral_constant<int, 4>());
    visit_all(std::integral_constant<int, 3>());
    visit_all(std::integral_constant<int, 2>());
    visit_all(std::integral_constant<int, 1>());
  }

  int rows_of(const AttentionItem& item) const { return item.num_queries * call_.group; }

  // Computes the scores of all rows with the keys of a tile.
  void score_tile(int tile) {
    const AttentionItem& item = *current_.item;
    const int rows = rows_of(item);
    const int begin = std::max(current_.begin, tile) / kLanes * kLanes;
    const int end = std::min(current_.end, tile + kTilePositions);
    for (int head = 0; head < item.num_heads; ++head) {
      const EntryPlaces keys = coding_.keys(current_, head, tile);
      for (int p = begin; p < end; p += kLanes) {
        transpose_lanes(keys, p, tile_ + p - tile);
      }
      if constexpr (Dots::kMultipliesTiles) {
        for (int row = 0; row < rows; row += Dots::kMostTileRows) {
          score_rows(row, std::min(rows - row, Dots::kMostTileRows), head, rows, tile);
        }
      } else {
        for_each_block(rows,
                       [&](auto count, int row) { score_block<count()>(row, head, rows, tile); });
      }
    }
  }

  // Computes the scores of `count` rows from `row` on, by AMX tiles.
  HWY_NOINLINE void score_rows(int row, int count, int head, int rows, int tile) {
    const int begin = std::max(visible_[row].begin, tile) / kLanes * kLanes;
    const int end = std::min(visible_[row + count - 1].end, tile + kTilePositions);
    if (begin >= end) return;
    Dots::score_rows(score_args(head * rows + row, head, begin, tile), count, end - begin,
                     ahead_.lines());
  }

  HWY_INLINE ScoreArgs<Dots> score_args(int state, int head, int p, int tile) {
    return {.queries = queries_ + state * packing_.num_units(),
            .row_stride = packing_.num_units(),
            .num_words = num_words_,
            .tile = tile_ + p - tile,
            .scores = scores_ + state * kRangePositions + p,
            .scales = coding_.score_scales(head, state, p)};
  }

  HWY_INLINE void transpose_lanes(const EntryPlaces& keys, int p, std::uint32_t* to) {
    const std::int64_t* offsets = keys.offsets + p;
    std::int64_t repeated[kLanes];
    if (p < current_.begin || p + kLanes > current_.end) {
      // Lanes of positions that no row sees repeat an entry that a row sees.
      for (int i = 0; i < kLanes; ++i) {
        repeated[i] = keys.offsets[std::clamp(p + i, current_.begin, current_.end - 1)];
      }
      offsets = repeated;
    }
    const std::int64_t bytes = Coding::key_bytes(call_);
    if constexpr (Dots::kFetchesRuns) {
      Fetch fetch = ahead_.lines();
      transpose_keys<Dots>(keys.entries, offsets, bytes, to, [&fetch] { fetch.advance(); });
      ahead_.lines() = fetch;
    } else {
      transpose_keys<Dots>(keys.entries, offsets, bytes, to, [] {});
    }
  }

  template <int kRows>
  HWY_NOINLINE void score_block(int row, int head, int rows, int tile) {
    const int state = head * rows + row;
    constexpr int kStep = vectors_for(kRows) * kLanes;
    const int begin = std::max(visible_[row].begin, tile);
    const int end = std::min(visible_[row + kRows - 1].end, tile + kTilePositions);
    for (int p = begin / kStep * kStep; p < end; p += kStep) {
      score<Dots, kRows>(score_args(state, head, p, tile), ahead_.lines());
    }
  }

  // Returns the softmax of one head of an item. The softmaxes of its heads are consecutive in
  // memory.
  Softmax softmax_in(float* memory, const AttentionItem& item, int head) const {
    const int rows = rows_of(item);
    return Softmax::in(memory + head * Softmax::floats(rows, padded_dim_), rows, padded_dim_);
  }

  // Finds where the softmaxes of a range are stored: in the call's partials; in `merged_` for an
  // item's first range without sinks; else in `found_`, from where they are merged.
  void find_place(const AttentionItem& item, std::int64_t range) {
    const std::int64_t before = range - item.first_range;
    if (item.partial >= 0) {
      range_ = call_.partials + item.partial +
               before * call_.kv_heads * Softmax::floats(rows_of(item), padded_dim_);
    } else {
      range_ = before == 0 && !call_.sinks ? merged_ : found_;
    }
  }

  void weigh_rows(const AttentionItem& item) {
    const int rows = rows_of(item);
    for (int head = 0; head < item.num_heads; ++head) {
      const Softmax found = softmax_in(range_, item, head);
      // Sums that AMX tiles compute begin at 0 without this.
      if (!Dots::kMultipliesTiles || has_few_rows(item)) {
        std::fill_n(found.sums, rows * padded_dim_, 0.0f);
      }
      for_each_block(rows, [&](auto count, int row) {
        weigh_block<count()>(row, head, head * rows + row, found);
      });
    }
  }

  template <int kRows>
  HWY_NOINLINE void weigh_block(int row, int head, int state, const Softmax& found) {
    float* const scores = scores_ + state * kRangePositions;
    const Visible* const visible = visible_ + row;
    for (int r = 0; r < kRows && call_.soft_cap > 0; ++r) {
      cap(scores + r * kRangePositions, visible[r]);
    }
    if constexpr (Coding::kWeighs) {
      coding_.template weigh<kRows>(current_, visible, head, state, scores, found.largest + row,
                                    found.totals + row);
    } else {
      Dots::template weigh<kRows>(scores, visible, found.largest + row, found.totals + row);
    }
  }

  // Adds the weighted values of a tile to the range's sums.
  void add_tile(int tile) {
    const AttentionItem& item = *current_.item;
    const int rows = rows_of(item);
    const Visible seen = {std::max(current_.begin, tile),
                          std::min(current_.end, tile + kTilePositions)};
    for (int head = 0; head < item.num_heads; ++head) {
      const EntryPlaces values = coding_.values(current_, head, tile);
      values_.load(values.entries, values.offsets, seen, ahead_.lines());
      // If rows see different positions, they can still be added together, with weights of 0: then
      // values have to be finite.
      const bool adds_unseen =
          kAddsUnseen || (!is_seen_by_all(rows, seen) && values_.are_finite(whole(seen)));
      add_by_blocks(head, seen, adds_unseen);
    }
  }

  HWY_INLINE void add_by_blocks(int head, Visible seen, bool adds_unseen) {
    const AttentionItem& item = *current_.item;
    const int rows = rows_of(item);
    for_each_block(rows, [&](auto count, int row) {
      const WeighedRows weighed{.weights = scores_ + (head * rows + row) * kRangePositions,
                                .sums = softmax_in(range_, item, head).sums + row * padded_dim_};
      if (adds_unseen) return add_unseen<count()>(row, weighed, seen);
      if constexpr (!kAddsUnseen) add_block<count()>(row, weighed, seen);
    });
  }

  // Computes the range's sums of weighted values by AMX tiles, which hold the sums meanwhile.
  void add_range() {
    const AttentionItem& item = *current_.item;
    const Visible seen = {current_.begin, current_.end};
    ahead_.fetch_next(next_);
    for (int head = 0; head < item.num_heads; ++head) {
      const EntryPlaces values = coding_.values(current_, head, 0);
      values_.load(values.entries, values.offsets, seen, ahead_.lines());
      add_by_tiles(head, seen,
                   is_seen_by_all(rows_of(item), seen) || values_.are_finite(whole(seen)));
    }
  }

  // Does so for one head. Adds row by row if tiles might add values that are not finite to rows
  // that do not see them.
  void add_by_tiles(int head, Visible seen, bool can_add_all) {
    const AttentionItem& item = *current_.item;
    const int rows = rows_of(item);
    const Softmax found = softmax_in(range_, item, head);
    for (int row = 0; row < rows;) {
      const int count = can_add_all ? Dots::rows_together(rows - row) : 1;
      const WeighedRows weighed{.weights = scores_ + (head * rows + row) * kRangePositions,
                                .sums = found.sums + row * padded_dim_};
      const Visible any = {std::max(seen.begin, visible_[row].begin),
                           std::min(seen.end, visible_[row + count - 1].end)};
      if (any.begin < any.end && can_add_all) {
        values_.sum_rows(count, weighed, whole(any), ahead_.lines());
      } else {
        std::fill_n(weighed.sums, count * padded_dim_, 0.0f);
        if (any.begin < any.end) values_.add_one(weighed, any);
      }
      row += count;
    }
  }

  // Extends positions to whole groups of Dots::kPositions.
  static Visible whole(Visible positions) {
    return {positions.begin / Dots::kPositions * Dots::kPositions, round_up(positions.end)};
  }

  bool is_seen_by_all(int rows, Visible positions) const {
    const Visible all = {visible_[rows - 1].begin, visible_[0].end};
    return all.begin <= positions.begin && positions.end <= all.end &&
           positions.begin % Dots::kPositions == 0 && positions.end % Dots::kPositions == 0;
  }

  // Adds the positions that any of the rows sees; a row that does not see one has weight 0 for it.
  template <int kRows>
  HWY_NOINLINE void add_unseen(int row, const WeighedRows& rows, Visible positions) {
    const Visible any = {std::max(positions.begin, visible_[row].begin),
                         std::min(positions.end, visible_[row + kRows - 1].end)};
    if (any.begin < any.end) values_.template add<kRows>(rows, whole(any), ahead_.lines());
  }

  template <int kRows>
  HWY_NOINLINE void add_block(int row, const WeighedRows& rows, Visible positions) {
    const Visible* visible = visible_ + row;
    // All rows see `all`, and are added together there. Before and after it, each row is added
    // alone.
    const Visible all = {
        round_up(std::max(positions.begin, visible[kRows - 1].begin)),
        std::min(positions.end, visible[0].end) / Dots::kPositions * Dots::kPositions};
    if (all.begin >= all.end) return add_each<kRows>(visible, rows, positions);
    if (visible[0].begin < all.begin) add_each<kRows>(visible, rows, {positions.begin, all.begin});
    values_.template add<kRows>(rows, all, ahead_.lines());
    if (visible[kRows - 1].end > all.end) add_each<kRows>(visible, rows, {all.end, positions.end});
  }

  static int round_up(int position) {
    return (position + Dots::kPositions - 1) / Dots::kPositions * Dots::kPositions;
  }

  template <int kRows>
  HWY_INLINE void add_each(const Visible* visible, const WeighedRows& rows, Visible positions) {
    for (int r = 0; r < kRows; ++r) {
      values_.add_one(
          {.weights = rows.weights + r * kRangePositions, .sums = rows.sums + r * padded_dim_},
          {std::max(positions.begin, visible[r].begin), std::min(positions.end, visible[r].end)},
          ahead_.lines());
    }
  }

  // Converts the sums of a range to float32.
  void finish_sums(const AttentionItem& item) {
    const int rows = rows_of(item);
    for (int head = 0; head < item.num_heads; ++head) {
      float* const sums = softmax_in(range_, item, head).sums;
      for (int row = 0; row < rows; ++row)
        coding_.finish_sums(head * rows + row, sums + row * padded_dim_);
    }
  }

  void merge_range(const AttentionItem& item) {
    for (int head = 0; head < item.num_heads; ++head) {
      merge_softmax(softmax_in(range_, item, head), softmax_in(merged_, item, head), rows_of(item),
                    padded_dim_);
    }
  }

  void cap(float* scores, Visible visible) const {
    const D d;
    const V cap = hn::Set(d, call_.soft_cap);
    const V unit = hn::Set(d, call_.soft_cap * std::numbers::log2e_v<float>);
    for (int i = visible.begin / kLanes * kLanes; i < visible.end; i += kLanes) {
      const V score = hn::LoadU(d, scores + i);
      hn::StoreU(hn::Mul(unit, hn::Tanh(d, hn::Div(score, cap))), d, scores + i);
    }
  }

  // Starts an item. A sink is a key with the weight exp(sink) and no value.
  void start(const AttentionItem& item) {
    const int rows = rows_of(item);
    for (int head = 0; head < item.num_heads; ++head) {
      const Softmax merged = softmax_in(merged_, item, head);
      const float* sinks =
          call_.sinks ? call_.sinks + (item.first_head + head) * call_.group : nullptr;
      std::fill_n(merged.sums, rows * padded_dim_, 0.0f);
      for (int row = 0; row < rows; ++row) {
        merged.largest[row] =
            sinks ? sinks[row % call_.group] * std::numbers::log2e_v<float> : kMinusInfinity;
        merged.totals[row] = sinks ? 1.0f : 0.0f;
      }
    }
  }

  void finish(const AttentionItem& item) {
    const int rows = rows_of(item);
    for (int head = 0; head < item.num_heads; ++head) {
      const Softmax merged = softmax_in(merged_, item, head);
      float* const out = call_.out + item.first_token * token_extent() +
                         (item.first_head + head) * call_.group * call_.head_dim;
      for (int row = 0; row < rows; ++row) {
        write_row(merged, row,
                  out + row / call_.group * token_extent() + row % call_.group * call_.head_dim);
      }
    }
  }
  std::int64_t token_extent() const { return call_.kv_heads * call_.group * call_.head_dim; }

  // Writes a row of the output. If a sum underflowed, the sign of its zero may depend on the batch:
  // adding 0 makes it positive.
  void write_row(const Softmax& merged, int row, float* out) {
    const D d;
    const float* sums = merged.sums + row * padded_dim_;
    if constexpr (Coding::kEndsRows) {
      coding_.end_row(sums, merged.totals[row], out);
    } else {
      const V total = hn::Set(d, merged.totals[row]);
      const auto value = [&](std::int64_t i) HWY_ATTR {
        return hn::Add(hn::Div(hn::LoadU(d, sums + i), total), hn::Zero(d));
      };
      std::int64_t i = 0;
      for (; i + 2 * kLanes <= call_.head_dim; i += 2 * kLanes) {
        Dots::store_pair(value(i), value(i + kLanes), out + i);
      }
      if (i >= call_.head_dim) return;
      HWY_ALIGN float rest[2 * kLanes];
      Dots::store_pair(value(i), value(i + kLanes), rest);
      std::copy_n(rest, call_.head_dim - i, out + i);
    }
  }

  const AttentionCall& call_;
  [[no_unique_address]] const typename Dots::Session session_ = {};
  const std::int64_t padded_dim_;
  const RangePlaces<Dots> places_;
  Coding coding_;
  const std::int64_t num_words_;  // words of a key in a tile
  const QueryPacking<Dots> packing_;
  typename Dots::Values values_;
  std::uint32_t* tile_;     // [padded_words, kTilePositions]
  Unit* queries_;           // [states, num_units], times the scale
  float* scores_;           // [states, kRangePositions]; then weights
  float* found_;            // softmaxes of a range
  float* merged_;           // merged softmaxes of the ranges before it
  float* range_ = nullptr;  // softmaxes of the current range
  Visible* visible_;        // [rows]
  FetchAhead<Dots> ahead_;
  FewRows<Dots> few_rows_;
  VisibleRange current_;  // the range that is computed
  VisibleRange next_;     // placed, so that its entries can be prefetched
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
