// Places of a range's entries and scales, for each target and kind of products.
#if defined(PAGODA_RANGE_PLACES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_RANGE_PLACES_INL_H
#undef PAGODA_RANGE_PLACES_INL_H
#else
#define PAGODA_RANGE_PLACES_INL_H
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_kernels-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Fills in VisibleRanges (attention_kernels-inl.h).
template <typename Dots>
class RangePlaces {
 public:
  explicit RangePlaces(const AttentionCall& call)
      : call_(call),
        has_scales_(call.keys.scales || call.values.scales),
        has_value_offsets_(call.values.slot_bytes != call.keys.slot_bytes) {
    for (int i = 0; i < kOffsetLanes; ++i) steps_[i] = i;
  }

  // The floats that a range's arrays take, with room for whole vectors that are written past an
  // end.
  static constexpr std::int64_t kOffsetFloats = 2 * (kRangePositions + 16);
  static constexpr std::int64_t kRunFloats = sizeof(Run) / 4 * kRangePositions;
  static constexpr std::int64_t kScaleRunFloats = sizeof(ScaleRun) / 4 * kRangePositions;
  static constexpr std::int64_t kFloats = 2 * kOffsetFloats + kRunFloats + kScaleRunFloats;

  // Gives the range its arrays, in memory of kFloats floats.
  void take_memory(VisibleRange& range, float* memory) const {
    range.offsets = reinterpret_cast<std::int64_t*>(memory);
    range.value_offsets = range.offsets + (has_value_offsets_ ? kOffsetFloats / 2 : 0);
    range.runs = reinterpret_cast<Run*>(memory + 2 * kOffsetFloats);
    range.scale_runs = reinterpret_cast<ScaleRun*>(memory + 2 * kOffsetFloats + kRunFloats);
  }

  void place(VisibleRange& range, const AttentionItem& item, std::int64_t index) const {
    const std::int64_t base = index * kRangePositions;
    const std::int64_t begin = std::max(first_visible(item.first_position, call_.window), base);
    const std::int64_t end =
        std::min<std::int64_t>(item.first_position + item.num_queries, base + kRangePositions);
    range.item = &item;
    range.is_fetched = false;
    range.first_position = base;
    range.begin = static_cast<int>(begin - base);
    range.end = static_cast<int>(end - base);
    range.num_runs = 0;
    range.num_scale_runs = 0;
    const std::int64_t first_slot = call_.first_slots ? call_.first_slots[item.seq] : -1;
    const bool is_one_run = first_slot >= 0;
    if (is_one_run) add_slots(range, begin, end, first_slot + begin);
    if (is_one_run && !has_scales_) return;
    const std::int32_t* block =
        call_.block_tables + item.seq * call_.max_blocks + begin / call_.block_size;
    std::int64_t in_block = begin % call_.block_size;
    for (std::int64_t p = begin; p < end; ++block, in_block = 0) {
      const std::int64_t stop = std::min(end, p + call_.block_size - in_block);
      if (!is_one_run) add_slots(range, p, stop, *block * call_.block_size + in_block);
      if (has_scales_) {
        range.scale_runs[range.num_scale_runs++] = {
            static_cast<int>(p - base), static_cast<int>(stop - base), *block, in_block};
      }
      p = stop;
    }
  }

 private:
  static constexpr int kOffsetLanes = 8;

  // Adds the positions [begin, end), whose slots are consecutive from `slot` on.
  HWY_INLINE void add_slots(VisibleRange& range, std::int64_t begin, std::int64_t end,
                            std::int64_t slot) const {
    const std::int64_t at = begin - range.first_position, count = end - begin;
    if (Dots::kFetchesRuns && !FewRows<Dots>::takes(call_, *range.item))
      add_runs(range, slot * call_.keys.slot_bytes, count);
    fill_offsets(slot, call_.keys.slot_bytes, count, range.offsets + at);
    if (has_value_offsets_)
      fill_offsets(slot, call_.values.slot_bytes, count, range.value_offsets + at);
  }

  // Writes the offsets of `count` consecutive slots, rounded up to whole vectors.
  HWY_INLINE void fill_offsets(std::int64_t slot, std::int64_t slot_bytes, std::int64_t count,
                               std::int64_t* to) const {
    const hn::CappedTag<std::int64_t, kOffsetLanes> d;
    constexpr int kStep = hn::MaxLanes(d);
    auto offsets = hn::Mul(hn::Add(hn::Set(d, slot), hn::Load(d, steps_)), hn::Set(d, slot_bytes));
    const auto step = hn::Set(d, kStep * slot_bytes);
    for (std::int64_t i = 0; i < count; i += kStep, offsets = hn::Add(offsets, step)) {
      hn::StoreU(offsets, d, to + i);
    }
  }

  // Adds `count` consecutive slots. Keys and values have entries of the same size here.
  void add_runs(VisibleRange& range, std::int64_t offset, std::int64_t count) const {
    const std::int64_t bytes = range.item->num_heads * call_.keys.entry_bytes;
    if (bytes == call_.keys.slot_bytes) {
      range.runs[range.num_runs++] = {offset, offset + count * bytes};
      return;
    }
    offset += range.item->first_head * call_.keys.entry_bytes;
    for (std::int64_t i = 0; i < count; ++i, offset += call_.keys.slot_bytes) {
      range.runs[range.num_runs++] = {offset, offset + bytes};
    }
  }

  const AttentionCall& call_;
  const bool has_scales_;
  const bool has_value_offsets_;
  HWY_ALIGN std::int64_t steps_[kOffsetLanes];
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
