// FetchAhead: prefetches keys and values before a thread of the cpu attention reads them, for each
// target. It fetches those of the next range or of the next tile. One head's entries lie far apart,
// in blocks in any order, which hardware prefetchers cannot predict.
#if defined(PAGODA_FETCH_AHEAD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_FETCH_AHEAD_INL_H
#undef PAGODA_FETCH_AHEAD_INL_H
#else
#define PAGODA_FETCH_AHEAD_INL_H
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_kernels-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

// Returns where the first and the last tile of what is seen of a range begin.
inline int first_tile(const VisibleRange& range) {
  return range.begin / kTilePositions * kTilePositions;
}
inline int last_tile(const VisibleRange& range) {
  return (range.end - 1) / kTilePositions * kTilePositions;
}

// Items of few rows fetch for themselves (FewRows).
template <typename Dots>
class FetchAhead {
 public:
  explicit FetchAhead(const AttentionCall& call) : call_(call) {}

  // Returns the lines that loops fetch on their way.
  typename Dots::Ahead& lines() { return lines_; }

  // Fetches the first range, which no earlier range has fetched ahead.
  void fetch_first(const VisibleRange& range) {
    if constexpr (Dots::kFetchesTiles) {
      fetch_tiles(range);
      lines_.finish();
    } else {
      fetch_runs(range, call_.keys, lines_.keys);
      fetch_runs(range, call_.values, lines_.values);
    }
  }

  // Starts to fetch the keys of `next` while the range before it is computed.
  void begin(const VisibleRange& next) {
    if constexpr (Dots::kFetchesRuns) fetch_runs(next, call_.keys, lines_.keys);
  }

  // Starts to fetch what is read after a tile of keys, while its scores are computed.
  void fetch_beside_scores(const VisibleRange& range, int tile) {
    if constexpr (Dots::kFetchesTiles) {
      const int first_values = Dots::kMultipliesTiles ? tile : first_tile(range);
      lines_.start(tile == last_tile(range) ? values_of(range, first_values)
                                            : keys_of(range, tile + kTilePositions));
    }
  }

  // Does the same for a tile of values; `next` is the range behind the last tile.
  void fetch_beside_sums(const VisibleRange& range, int tile, const VisibleRange& next) {
    const bool is_last = tile == last_tile(range);
    if constexpr (Dots::kFetchesRuns) {
      if (is_last) fetch_runs(next, call_.values, lines_.values);
    }
    if constexpr (Dots::kFetchesTiles) {
      if (is_last) return fetch_next(next);
      lines_.start(values_of(range, tile + kTilePositions));
    }
  }

  // Starts to fetch the first tiles of `next` among products.
  void fetch_next(const VisibleRange& next) {
    if (next.item && !FewRows<Dots>::takes(call_, *next.item)) fetch_tiles(next);
  }

 private:
  void fetch_tiles(const VisibleRange& range) {
    lines_.start(keys_of(range, first_tile(range)));
    // Scores have as many products as it takes to fetch the other keys and the last tile of values.
    if constexpr (Dots::kMultipliesTiles) lines_.follow(values_before_last_tile(range));
  }

  // Returns the entries of all the item's heads at what it sees of some positions.
  static TileAhead::Entries entries_of(const VisibleRange& range, const CallEntries& entries,
                                       const std::int64_t* offsets, int begin, int end) {
    return {.base = entries.elements + range.item->first_head * entries.entry_bytes,
            .next = offsets + std::max(range.begin, begin),
            .last = offsets + std::min(range.end, end),
            .bytes = range.item->num_heads * entries.entry_bytes};
  }
  TileAhead::Entries keys_of(const VisibleRange& range, int tile) const {
    return entries_of(range, call_.keys, range.offsets, tile, tile + kTilePositions);
  }
  TileAhead::Entries values_of(const VisibleRange& range, int tile) const {
    return entries_of(range, call_.values, range.value_offsets, tile, tile + kTilePositions);
  }
  TileAhead::Entries values_before_last_tile(const VisibleRange& range) const {
    const int end = std::max(range.begin, last_tile(range));
    return entries_of(range, call_.values, range.value_offsets, range.begin, end);
  }

  // Starts to fetch a range's entries while what follows is computed.
  void fetch_runs(const VisibleRange& range, const CallEntries& entries, Stream& stream) const {
    while (!stream.is_done()) stream.advance();
    stream = {.base = entries.elements, .next = range.runs, .last = range.runs + range.num_runs};
  }

  const AttentionCall& call_;
  typename Dots::Ahead lines_;
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
