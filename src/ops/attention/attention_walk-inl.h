// The cpu attention's walk over items, for each target (attention_items.h says what an item is).
//
// A unit is one range of one kv head: its keys are transposed a tile at a time for all rows of the
// item, then each few rows have their softmax and their weighted values, read where they lie. While
// a unit is computed the next one's entries are fetched into L2: entries of one head lie far apart
// in blocks in no order, which no hardware foresees.
#if defined(PAGODA_ATTENTION_WALK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_ATTENTION_WALK_INL_H
#undef PAGODA_ATTENTION_WALK_INL_H
#else
#define PAGODA_ATTENTION_WALK_INL_H
#endif

#include <algorithm>
#include <numbers>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"
#include "ops/attention/attention_items.h"
#include "ops/attention/attention_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kOffsetLanes = 8;

// Scratch is the calling thread's own: walk_floats() of it, aligned to vectors.
template <typename T>
class Walk {
 public:
  Walk(const AttentionCall& call, const AttentionPlan::Counts& counts, float* scratch)
      : call_(call),
        padded_dim_(call.padded_dim()),
        num_words_((call.entry_bytes + 3) / 4),
        query_dim_(num_words_ * Words<T>::kElements),
        copies_values_(call.head_dim != padded_dim_) {
    const auto take = [&scratch](std::int64_t count) {
      return std::exchange(scratch, scratch + (count + 15) / 16 * 16);
    };
    const std::int64_t padded_words = (num_words_ + kLanes - 1) / kLanes * kLanes;
    tile_ = reinterpret_cast<std::uint32_t*>(take(padded_words * kTilePositions));
    queries_ = take(counts.states * query_dim_);
    scores_ = take(counts.states * kRangePositions);
    found_ = take(counts.found_floats);
    merged_ =
        Softmax::in(take(Softmax::floats(counts.states, padded_dim_)), counts.states, padded_dim_);
    visible_ = reinterpret_cast<Visible*>(take(2 * counts.rows));
    for (Unit* unit : {&unit_, &next_}) {
      unit->offsets = reinterpret_cast<std::int64_t*>(take(2 * (kRangePositions + kOffsetLanes)));
      unit->runs = reinterpret_cast<Run*>(take(4 * kRangePositions));
    }
    if (copies_values_) {
      copies_ = reinterpret_cast<T*>(take(kRangePositions * padded_dim_));
      copy_offsets_ = reinterpret_cast<std::int64_t*>(take(2 * kRangePositions));
      std::fill_n(copies_, kRangePositions * padded_dim_, T{});
      for (int p = 0; p < kRangePositions; ++p) {
        copy_offsets_[p] = p * padded_dim_ * static_cast<std::int64_t>(sizeof(T));
      }
    }
  }

  void run(AttentionQueue& queue) {
    const AttentionItem* item = queue.claim();
    if (item) begin(*item);
    while (item) {
      const AttentionItem* after = queue.claim_ahead();
      attend(*item, after);
      item = after;
      if (!item && (item = queue.claim())) begin(*item);
    }
  }

  // Merges the ranges that other walks have left as partials of this item.
  void merge(const AttentionItem& item) {
    const int rows = rows_of(item);
    const std::int64_t floats = Softmax::floats(rows, padded_dim_);
    start(item);
    for (int range = item.first_range; range <= item.last_range; ++range) {
      const std::int64_t at =
          item.partial + std::int64_t{range - item.first_range} * call_.kv_heads * floats;
      const Softmax partial = Softmax::in(call_.partials + at, rows, padded_dim_);
      for (int row = 0; row < rows; row += kMaxRows) {
        merge_rows(partial, row, row, std::min(kMaxRows, rows - row));
      }
    }
    finish(item);
  }

 private:
  // A range as an item sees it.
  struct Unit {
    const AttentionItem* item = nullptr;
    int begin = 0;  // of the positions that any query sees, within the range
    int end = 0;
    std::int64_t* offsets = nullptr;  // [kRangePositions] of their slots, bytes
    Run* runs = nullptr;              // [kRangePositions] of their entries of all heads of the item
    int num_runs = 0;
  };

  void place(Unit& unit, const AttentionItem& item, std::int64_t range) const {
    const std::int64_t base = range * kRangePositions;
    const std::int64_t begin = std::max(first_visible(item.first_position, call_.window), base);
    const std::int64_t end =
        std::min<std::int64_t>(item.first_position + item.num_queries, base + kRangePositions);
    unit.item = &item;
    unit.begin = static_cast<int>(begin - base);
    unit.end = static_cast<int>(end - base);
    const std::int32_t* block =
        call_.block_tables + item.seq * call_.max_blocks + begin / call_.block_size;
    std::int64_t in_block = begin % call_.block_size;
    unit.num_runs = 0;
    for (std::int64_t p = begin; p < end; ++block, in_block = 0) {
      std::int64_t offset = (*block * call_.block_size + in_block) * call_.slot_bytes;
      const std::int64_t stop = std::min(end, p + call_.block_size - in_block);
      add_runs(unit, offset, stop - p);
      fill_offsets(offset, static_cast<int>(stop - p), unit.offsets + (p - base));
      p = stop;
    }
  }

  // The offsets of `count` slots that follow one another; up to a vector more is written.
  HWY_INLINE void fill_offsets(std::int64_t offset, int count, std::int64_t* to) const {
    const hn::CappedTag<std::int64_t, kOffsetLanes> d;
    constexpr int kStep = hn::MaxLanes(d);
    HWY_ALIGN std::int64_t first[kStep];
    for (int i = 0; i < kStep; ++i) first[i] = offset + i * call_.slot_bytes;
    auto offsets = hn::Load(d, first);
    const auto step = hn::Set(d, kStep * call_.slot_bytes);
    for (int i = 0; i < count; i += kStep, offsets = hn::Add(offsets, step)) {
      hn::StoreU(offsets, d, to + i);
    }
  }

  // `count` slots that follow one another.
  void add_runs(Unit& unit, std::int64_t offset, std::int64_t count) const {
    const std::int64_t bytes = unit.item->num_heads * call_.entry_bytes;
    if (bytes == call_.slot_bytes) {
      unit.runs[unit.num_runs++] = {offset, offset + count * bytes};
      return;
    }
    offset += unit.item->first_head * call_.entry_bytes;
    for (std::int64_t i = 0; i < count; ++i, offset += call_.slot_bytes) {
      unit.runs[unit.num_runs++] = {offset, offset + bytes};
    }
  }

  // Has a unit's entries fetched while what follows is computed.
  void fetch(const Unit& unit, const std::byte* entries, Stream& stream) const {
    while (!stream.is_done()) stream.advance();
    stream = {.base = entries, .next = unit.runs, .last = unit.runs + unit.num_runs};
  }

  // What no unit before it has had fetched.
  void begin(const AttentionItem& item) {
    place(next_, item, item.first_range);
    fetch(next_, call_.keys, fetch_.keys);
    fetch(next_, call_.values, fetch_.values);
  }

  static int first_tile(const Unit& unit) { return unit.begin / kTilePositions * kTilePositions; }

  void attend(const AttentionItem& item, const AttentionItem* after) {
    load_queries(item);
    if (item.partial < 0) start(item);
    for (std::int64_t range = item.first_range; range <= item.last_range; ++range) {
      std::swap(unit_, next_);
      next_.item = nullptr;
      next_.num_runs = 0;
      if (range < item.last_range) {
        place(next_, item, range + 1);
      } else if (after) {
        place(next_, *after, after->first_range);
      }
      see(item, range);
      fetch(next_, call_.keys, fetch_.keys);
      for (int tile = first_tile(unit_); tile < unit_.end; tile += kTilePositions) score_tile(tile);
      find_place(item, range);
      weigh_rows(item);
      for (int tile = first_tile(unit_); tile < unit_.end; tile += kTilePositions) {
        if (tile + kTilePositions >= unit_.end) fetch(next_, call_.values, fetch_.values);
        add_tile(tile);
      }
      if (item.partial < 0) merge_range(item);
    }
    if (item.partial < 0) finish(item);
  }

  void load_queries(const AttentionItem& item) {
    const int rows = rows_of(item);
    const float factor =
        call_.soft_cap > 0 ? call_.scale : call_.scale * std::numbers::log2e_v<float>;
    for (int head = 0; head < item.num_heads; ++head) {
      const float* from = call_.q + item.first_token * call_.token_stride +
                          (item.first_head + head) * call_.group * call_.head_stride;
      for_each_block(rows, [&](auto count, int row) {
        const float* q[count()];
        for (int r = 0; r < count(); ++r) {
          q[r] = from + (row + r) / call_.group * call_.token_stride +
                 (row + r) % call_.group * call_.head_stride;
        }
        float* const to = queries_ + (head * rows + row) * query_dim_;
        if constexpr (kIsInterleaved<count()>) {
          interleave_queries<count()>(q, factor, to);
        } else {
          for (int r = 0; r < count(); ++r) copy_query(q[r], factor, to + r * query_dim_);
        }
      });
    }
  }

  HWY_INLINE void copy_query(const float* q, float factor, float* to) const {
    std::int64_t d = 0;
    for (; d + kLanes <= call_.head_dim; d += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(D(), q + d), hn::Set(D(), factor)), D(), to + d);
    }
    for (; d < query_dim_; ++d) to[d] = d < call_.head_dim ? q[d] * factor : 0;
  }

  // to[d, r] = q[r][d]; four rows and dimensions at a time.
  template <int kRows>
  HWY_INLINE void interleave_queries(const float* const* q, float factor, float* to) const {
    const hn::CappedTag<float, 4> d4;
    const hn::Repartition<double, decltype(d4)> d2;
    const auto scale = hn::Set(d4, factor);
    const std::int64_t whole = call_.head_dim / 4 * 4;
    constexpr int kWholeRows = kRows / 4 * 4;
    for (std::int64_t d = 0; d < whole; d += 4) {
      for (int r = 0; r < kWholeRows; r += 4) {
        const auto load = [&](int i) { return hn::Mul(hn::LoadU(d4, q[r + i] + d), scale); };
        const auto store = [&](auto v, int i) {
          hn::StoreU(hn::BitCast(d4, v), d4, to + (d + i) * kRows + r);
        };
        const auto a = load(0), b = load(1), c = load(2), e = load(3);
        const auto ab_low = hn::BitCast(d2, hn::InterleaveLower(d4, a, b));
        const auto ab_high = hn::BitCast(d2, hn::InterleaveUpper(d4, a, b));
        const auto ce_low = hn::BitCast(d2, hn::InterleaveLower(d4, c, e));
        const auto ce_high = hn::BitCast(d2, hn::InterleaveUpper(d4, c, e));
        store(hn::InterleaveLower(d2, ab_low, ce_low), 0);
        store(hn::InterleaveUpper(d2, ab_low, ce_low), 1);
        store(hn::InterleaveLower(d2, ab_high, ce_high), 2);
        store(hn::InterleaveUpper(d2, ab_high, ce_high), 3);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (std::int64_t d = r < kWholeRows ? whole : 0; d < query_dim_; ++d) {
        to[d * kRows + r] = d < call_.head_dim ? q[r][d] * factor : 0;
      }
    }
  }

  // What each row sees of the range. Later queries see later positions.
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

  // Calls visit(count, row) on all rows, as many at a time as can be; `count` is a constant.
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

  // The scores of all rows with the keys of a tile.
  void score_tile(int tile) {
    const AttentionItem& item = *unit_.item;
    const int rows = rows_of(item);
    const int begin = std::max(unit_.begin, tile) / kLanes * kLanes;
    const int end = std::min(unit_.end, tile + kTilePositions);
    for (int head = 0; head < item.num_heads; ++head) {
      const std::byte* keys = call_.keys + (item.first_head + head) * call_.entry_bytes;
      for (int p = begin; p < end; p += kLanes) {
        transpose_lanes(keys, p, tile_ + p - tile);
      }
      for_each_block(
          rows, [&](auto count, int row) { score_block<count()>(row, head * rows + row, tile); });
    }
  }

  HWY_INLINE void transpose_lanes(const std::byte* keys, int p, std::uint32_t* to) {
    const std::int64_t* offsets = unit_.offsets + p;
    std::int64_t repeated[kLanes];
    if (p < unit_.begin || p + kLanes > unit_.end) {
      // Lanes that no row sees repeat an entry that one does.
      for (int i = 0; i < kLanes; ++i) {
        repeated[i] = unit_.offsets[std::clamp(p + i, unit_.begin, unit_.end - 1)];
      }
      offsets = repeated;
    }
    Fetch fetch = fetch_;
    transpose_keys(keys, offsets, call_.entry_bytes, to, [&fetch] { fetch.advance(); });
    fetch_ = fetch;
  }

  template <int kRows>
  HWY_NOINLINE void score_block(int row, int state, int tile) {
    constexpr int kStep = vectors_for(kRows) * kLanes;
    const int begin = std::max(visible_[row].begin, tile);
    const int end = std::min(visible_[row + kRows - 1].end, tile + kTilePositions);
    for (int p = begin / kStep * kStep; p < end; p += kStep) {
      score<T, kRows>({.queries = queries_ + state * query_dim_,
                       .row_stride = query_dim_,
                       .num_words = num_words_,
                       .tile = tile_ + p - tile,
                       .scores = scores_ + state * kRangePositions + p});
    }
  }

  // Where the softmaxes of a range go: a piece of memory for each head, `head_floats_` apart.
  void find_place(const AttentionItem& item, std::int64_t range) {
    const int rows = rows_of(item);
    head_floats_ = Softmax::floats(rows, padded_dim_);
    float* const memory = item.partial < 0
                              ? found_
                              : call_.partials + item.partial +
                                    (range - item.first_range) * call_.kv_heads * head_floats_;
    range_ = Softmax::in(memory, rows, padded_dim_);
  }

  void weigh_rows(const AttentionItem& item) {
    const int rows = rows_of(item);
    for (int head = 0; head < item.num_heads; ++head) {
      float* const largest = range_.largest + head * head_floats_;
      float* const totals = range_.totals + head * head_floats_;
      std::fill_n(range_.sums + head * head_floats_, rows * padded_dim_, 0.0f);
      for (int row = 0; row < rows; ++row) {
        const Visible visible = visible_[row];
        float* const scores = scores_ + (head * rows + row) * kRangePositions;
        largest[row] = kMinusInfinity;
        totals[row] = 0;
        if (visible.begin >= visible.end) continue;
        if (call_.soft_cap > 0) cap(scores, visible);
        weigh(scores, visible, largest[row], totals[row]);
      }
    }
  }

  // Adds the weighted values of a tile to the range's sums.
  void add_tile(int tile) {
    const AttentionItem& item = *unit_.item;
    const int rows = rows_of(item);
    const int begin = std::max(unit_.begin, tile);
    const int end = std::min(unit_.end, tile + kTilePositions);
    for (int head = 0; head < item.num_heads; ++head) {
      const std::byte* entries = call_.values + (item.first_head + head) * call_.entry_bytes;
      if (copies_values_) copy_values(entries, begin, end);
      for_each_block(rows, [&](auto count, int row) {
        const ValueArgs values{
            .values = copies_values_ ? reinterpret_cast<const std::byte*>(copies_) : entries,
            .offsets = copies_values_ ? copy_offsets_ : unit_.offsets,
            .weights = scores_ + (head * rows + row) * kRangePositions,
            .sums = range_.sums + head * head_floats_ + row * padded_dim_,
            .padded_dim = padded_dim_};
        add_block<count()>(row, values, {begin, end});
      });
    }
  }

  // A copy of values, padded to whole vectors.
  void copy_values(const std::byte* values, int begin, int end) {
    for (int p = begin; p < end; ++p) {
      std::copy_n(reinterpret_cast<const T*>(values + unit_.offsets[p]), call_.head_dim,
                  copies_ + p * padded_dim_);
    }
  }

  template <int kRows>
  HWY_NOINLINE void add_block(int row, const ValueArgs& values, Visible piece) {
    const Visible* visible = visible_ + row;
    // What all rows see together; before and after it each row has its own.
    const Visible all = {std::max(piece.begin, visible[kRows - 1].begin),
                         std::min(piece.end, visible[0].end)};
    if (all.begin >= all.end) return add_each<kRows>(visible, values, piece);
    if (visible[0].begin < all.begin) add_each<kRows>(visible, values, {piece.begin, all.begin});
    add_values<T, kRows>(values, all.begin, all.end, fetch_);
    if (visible[kRows - 1].end > all.end) add_each<kRows>(visible, values, {all.end, piece.end});
  }

  template <int kRows>
  HWY_INLINE void add_each(const Visible* visible, const ValueArgs& values, Visible piece) {
    for (int r = 0; r < kRows; ++r) {
      ValueArgs row = values;
      row.weights += r * kRangePositions;
      row.sums += r * padded_dim_;
      add_values<T, 1>(row, std::max(piece.begin, visible[r].begin),
                       std::min(piece.end, visible[r].end), fetch_);
    }
  }

  void merge_range(const AttentionItem& item) {
    const int rows = rows_of(item);
    for (int head = 0; head < item.num_heads; ++head) {
      const std::int64_t floats = head * head_floats_;
      const Softmax range{.sums = range_.sums + floats,
                          .largest = range_.largest + floats,
                          .totals = range_.totals + floats};
      for (int row = 0; row < rows; row += kMaxRows) {
        merge_rows(range, row, head * rows + row, std::min(kMaxRows, rows - row));
      }
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

  // A sink is a key that weighs exp(sink) and has no value.
  void start(const AttentionItem& item) {
    const int rows = rows_of(item);
    std::fill_n(merged_.sums, item.num_heads * rows * padded_dim_, 0.0f);
    for (int state = 0; state < item.num_heads * rows; ++state) {
      const int head = (item.first_head + state / rows) * call_.group + state % rows % call_.group;
      merged_.largest[state] =
          call_.sinks ? call_.sinks[head] * std::numbers::log2e_v<float> : kMinusInfinity;
      merged_.totals[state] = call_.sinks ? 1.0f : 0.0f;
    }
  }

  // Merges `count` rows, at most kMaxRows, of a range's softmax into what the ranges before it
  // left. A row that sees nothing of the range changes nothing.
  void merge_rows(const Softmax& range, int row, int state, int count) {
    const D d;
    HWY_ALIGN float kept[16], added[16], largest[16] = {}, totals[16] = {};
    HWY_ALIGN float old_largest[16] = {}, old_totals[16] = {};
    std::copy_n(range.largest + row, count, largest);
    std::copy_n(range.totals + row, count, totals);
    std::copy_n(merged_.largest + state, count, old_largest);
    std::copy_n(merged_.totals + state, count, old_totals);
    for (int i = 0; i < count; i += kLanes) {
      const V total = hn::Load(d, totals + i), old_total = hn::Load(d, old_totals + i);
      const V own = hn::Load(d, largest + i), old = hn::Load(d, old_largest + i);
      const auto is_empty = hn::Eq(total, hn::Zero(d));
      const V most = hn::Max(own, old);
      const V keep = hn::IfThenElse(is_empty, hn::Set(d, 1.0f), exp2_of(hn::Sub(old, most)));
      const V add = hn::IfThenZeroElse(is_empty, exp2_of(hn::Sub(own, most)));
      hn::Store(keep, d, kept + i);
      hn::Store(add, d, added + i);
      hn::Store(most, d, largest + i);
      hn::Store(hn::MulAdd(total, add, hn::Mul(old_total, keep)), d, totals + i);
    }
    std::copy_n(largest, count, merged_.largest + state);
    std::copy_n(totals, count, merged_.totals + state);
    const float* from = range.sums + row * padded_dim_;
    float* to = merged_.sums + state * padded_dim_;
    for (int r = 0; r < count; ++r, from += padded_dim_, to += padded_dim_) {
      const V keep = hn::Set(d, kept[r]), add = hn::Set(d, added[r]);
      for (std::int64_t i = 0; i < padded_dim_; i += kLanes) {
        const V old = hn::Mul(hn::LoadU(d, to + i), keep);
        hn::StoreU(hn::MulAdd(hn::LoadU(d, from + i), add, old), d, to + i);
      }
    }
  }

  void finish(const AttentionItem& item) {
    const int rows = rows_of(item);
    for (int state = 0; state < item.num_heads * rows; ++state) {
      const int row = state % rows;
      const std::int64_t token = item.first_token + row / call_.group;
      const std::int64_t head = (item.first_head + state / rows) * call_.group + row % call_.group;
      write_row(state, call_.out + (token * call_.kv_heads * call_.group + head) * call_.head_dim);
    }
  }

  // Adding 0 makes the zero of a sum that underflowed, whose sign may depend on company, positive.
  void write_row(int state, float* out) {
    const D d;
    const V total = hn::Set(d, merged_.totals[state]);
    const float* sums = merged_.sums + state * padded_dim_;
    const auto value = [&](std::int64_t i) HWY_ATTR {
      return hn::Add(hn::Div(hn::LoadU(d, sums + i), total), hn::Zero(d));
    };
    std::int64_t i = 0;
    for (; i + 2 * kLanes <= call_.head_dim; i += 2 * kLanes) {
      ValuePair<T>::store(value(i), value(i + kLanes), out + i);
    }
    if (i >= call_.head_dim) return;
    HWY_ALIGN float rest[2 * kLanes];
    ValuePair<T>::store(value(i), value(i + kLanes), rest);
    std::copy_n(rest, call_.head_dim - i, out + i);
  }

  const AttentionCall& call_;
  const std::int64_t padded_dim_;
  const std::int64_t num_words_;  // of a key
  const std::int64_t query_dim_;  // head_dim, and a zero where a word has one element too many
  const bool copies_values_;      // because their vectors are not whole
  std::uint32_t* tile_;           // [num_words, kTilePositions]
  float* queries_;                // [states, query_dim], times the scale
  float* scores_;                 // [states, kRangePositions]; then weights
  float* found_;                  // what a range's softmaxes take
  Softmax range_;                 // of the range under way, the first head's rows
  std::int64_t head_floats_ = 0;  // from there to the next head's
  Softmax merged_;                // [states] of the ranges before
  Visible* visible_;              // [rows]
  Fetch fetch_;
  Unit unit_;            // under way
  Unit next_;            // placed, so that its entries can be fetched
  T* copies_ = nullptr;  // [kRangePositions, padded_dim]
  std::int64_t* copy_offsets_ = nullptr;
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
