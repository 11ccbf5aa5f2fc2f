// FetchAhead: prefetches keys and values before a thread of the cpu attention reads them, compiled
// for each target. It prefetches the next range or the next tile. One head's entries are far apart,
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

// Returns where the first tile that is seen of a range begins; last_tile() does so for the last
// one.
inline int first_tile(const VisibleRange& range) {
  return range.begin / kTilePositions * kTilePositions;
}
inline int last_tile(const VisibleRange& range) {
  return (range.end - 1) / kTilePositions * kTilePositions;
}

// Prefetches entries for all items except items of few rows, for which FewRows prefetches.
template <typename Dots>
class FetchAhead {
 public:
  explicit FetchAhead(const AttentionCall& call) : call_(call) {}

  // Returns the lines that loops prefetch while they compute.
  typename Dots::Ahead& lines() { return lines_; }

  // Prefetches an item's first range, which no earlier range has prefetched.
  void fetch_first(const VisibleRange& range) {
    if constexpr (Dots::kFetchesTiles) {
      fetch_tiles(range);
      lines_.finish();
    } else {
      fetch_runs(range, call_.keys, lines_.keys);
      fetch_runs(range, call_.values, lines_.values);
    }
  }

  // Starts to prefetch the keys of `next` while the range before it is computed.
  void begin(const VisibleRange& next) {
    if constexpr (Dots::kFetchesRuns) fetch_runs(next, call_.keys, lines_.keys);
  }

  // Starts to prefetch the entries that are read after a tile of keys, while its scores are
  // computed.
  void fetch_beside_scores(const VisibleRange& range, int tile) {
    if constexpr (Dots::kFetchesTiles) {
      const int first_values = Dots::kMultipliesTiles ? tile : first_tile(range);
      lines_.start(tile == last_tile(range) ? values_of(range, first_values)
                                            : keys_of(range, tile + kTilePositions));
    }
  }

  // Does the same for a tile of values; `next` is the range after the last tile.
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

  // Starts to prefetch the first tiles of `next` during products.
  void fetch_next(const VisibleRange& next) {
    if (next.item && !FewRows<Dots>::takes(call_, *next.item)) fetch_tiles(next);
  }

 private:
  void fetch_tiles(const VisibleRange& range) {
    lines_.start(keys_of(range, first_tile(range)));
    // Scores leave time to prefetch the other keys and the last tile of values, but no more.
    if constexpr (Dots::kMultipliesTiles) lines_.follow(values_before_last_tile(range));
  }

  // Returns the entries of all the item's heads, at the positions in [begin, end) that it sees.
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

  // Starts to prefetch a range's entries during the work that follows.
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
