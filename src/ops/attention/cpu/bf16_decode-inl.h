// The cpu attention for few rows, as in decodes, on machines that multiply pairs of bfloat16. It
// has the products and the order of sums of bf16_dots-inl.h, or of tile_dots-inl.h, so the same
// bits.
//
// Few rows wait for memory. Here keys and values are read once, in place, and multiplied in
// registers. Sixteen positions are read at a time, one head after another. Meanwhile the next
// sixteen positions, or later ones, are prefetched in the order of memory.
#if defined(PAGODA_BF16_DECODE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_BF16_DECODE_INL_H
#undef PAGODA_BF16_DECODE_INL_H
#else
#define PAGODA_BF16_DECODE_INL_H
#endif

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"
#include "ops/attention/cpu/bf16_dots-inl.h"
#include "ops/attention/cpu/tile_dots-inl.h"

#if PAGODA_HAS_PAIR_DOTS

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kLineBytes = 64;

// Sixteen entries of one head at consecutive positions, `stride` bytes apart.
struct EntryGroup {
  const std::byte* entries;
  std::int64_t stride;
};

// The cache lines that are prefetched while an EntryGroup is read: with line `block` of entry i,
// the line at `from` + i * entry_step + block * block_step.
struct LinesAhead {
  const std::byte* from;
  std::int64_t entry_step;
  std::int64_t block_step;
  PrefetchLevel level;

  HWY_INLINE void fetch(const std::byte* line) const {
    if (level == PrefetchLevel::kSecond) {
      __builtin_prefetch(line, 0, 2);
    } else {
      __builtin_prefetch(line, 0, 3);
    }
  }
};

// Advances a pointer. The asm keeps the compiler from having one pointer for each entry, which is
// more than there are registers.
HWY_INLINE const std::byte* step(const std::byte* at, std::int64_t bytes) {
  at += bytes;
  asm("" : "+r"(at));
  return at;
}

// Loads a line once. The asm keeps the compiler from loading it again for each use.
HWY_INLINE VWords load_line(const std::byte* at) {
  VWords words = load_values(at);
  asm("" : "+v"(words.raw));
  return words;
}

// Computes the scores of kRows queries, row_stride apart, with 16 keys of num_blocks times 16
// words.
template <class Dots, int kRows>
HWY_INLINE void score_group(const EntryGroup& keys, std::int64_t num_blocks,
                            const std::uint32_t* queries, std::int64_t row_stride, float* scores,
                            const LinesAhead& lines) {
  typename Dots::template BlockSums<kRows, 1> sums;
  sums.clear();
  for (std::int64_t block = 0; block < num_blocks; ++block, queries += kLanes) {
    const std::byte* key = keys.entries + block * kLineBytes;
    const std::byte* ahead = lines.from + block * lines.block_step;
    VWords words[kLanes];
    const auto load = [&](int /*i*/) HWY_ATTR {
      lines.fetch(ahead);
      ahead = step(ahead, lines.entry_step);
      const VWords loaded = load_line(key);
      key = step(key, keys.stride);
      return loaded;
    };
    transpose(load, words, [] {});
    sums.begin_block();
    PAGODA_UNROLL
    for (int i = 0; i < kLanes; ++i) {
      sums.add(queries + i, row_stride, words + i);
    }
    sums.end_block();
  }
  sums.store(scores, kRangePositions);
}

// Sixteen values of one head, and the lines that are prefetched meanwhile.
struct ValueGroup {
  EntryGroup values;
  LinesAhead lines;
};

// Adds the weighted values of consecutive groups to the rows' sums, in kVectors vectors of
// dimensions.
template <class Dots, int kRows, int kVectors>
HWY_INLINE void add_groups(const ValueGroup* groups, int count, const WeighedRows& rows,
                           std::int64_t padded_dim) {
  typename Dots::template BlockSums<kRows, kVectors> sums;
  sums.begin_block_of(rows.sums, padded_dim);
  const auto* weights = reinterpret_cast<const std::uint32_t*>(rows.weights);
  for (int group = 0; group < count; ++group) {
    const EntryGroup& values = groups[group].values;
    const LinesAhead& lines = groups[group].lines;
    const std::byte* even = values.entries;
    const std::byte* ahead = lines.from;
    for (int pair = 0; pair < kLanes / 2; ++pair, ++weights) {
      const std::byte* const odd = even + values.stride;
      VWords value[kVectors];
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; v += 2) {
        const int block = v / 2;
        interleave(load_line(even + block * kLineBytes), load_line(odd + block * kLineBytes),
                   value + v);
      }
      PAGODA_UNROLL
      for (int entry = 0; entry < 2; ++entry) {
        PAGODA_UNROLL
        for (int block = 0; block < kVectors / 2; ++block) {
          lines.fetch(ahead + block * lines.block_step);
        }
        ahead += lines.entry_step;
      }
      sums.add(weights, kRangePositions, value);
      even = odd + values.stride;
    }
  }
  sums.end_block_of(rows.sums, padded_dim);
}

template <class Dots>
class FewRowsOfPairs {
 public:
  // Takes memory for copies: 64 bytes for each of call.padded_dim().
  FewRowsOfPairs(const AttentionCall& call, std::byte* copies)
      : call_(call),
        entry_bytes_(call.keys.entry_bytes),
        slot_bytes_(call.keys.slot_bytes),
        num_blocks_(call.padded_dim() * 2 / kLineBytes),
        copies_(copies) {}

  static bool takes(const AttentionCall& call, const AttentionItem& item) {
    return item.num_queries == 1 && call.group <= kMostFewRows;
  }

  // Prefetches the first groups of a range, if no other range was read before it.
  void fetch_first(const VisibleRange& range) {
    begin(range, VisibleRange());
    for (int group = 0; group < groups_ahead_; ++group) {
      for (int head = 0; head < range.item->num_heads; ++head) {
        const LinesAhead lines = lines_ahead(order_[group], head, 0, 1);
        for (std::int64_t line = 0; line < kLanes * num_blocks_; ++line) {
          lines.fetch(lines.from + line / kLanes * lines.block_step +
                      line % kLanes * lines.entry_step);
        }
      }
    }
  }

  // Prepares to read `range` next, and then `after`, if that has an item.
  void begin(const VisibleRange& range, const VisibleRange& after) {
    item_ = range.item;
    const std::int64_t group_bytes = item_->num_heads * entry_bytes_ * kLanes;
    reads_slots_ = item_->num_heads * entry_bytes_ == slot_bytes_;
    groups_ahead_ = group_bytes < kBytesAhead ? kMostGroupsAhead : 1;
    const std::byte** to = order_;
    for (const std::byte* entries : {call_.keys.elements, call_.values.elements}) {
      for (int p = first_group(range); p < range.end; p += kLanes) *to++ = entry(range, entries, p);
    }
    const std::byte* const last = to[-1];
    for (int i = 0; i < groups_ahead_; ++i) {
      const int p = first_group(after) + i * kLanes;
      *to++ = after.item && p < after.end ? entry(after, call_.keys.elements, p) : last;
    }
  }

  // Computes scores: [heads * rows, kRangePositions].
  void score(const VisibleRange& range, const std::uint32_t* queries, const PlainCoding& /*coding*/,
             float* scores) {
    for_few_rows(call_.group, [&](auto rows) { score_rows<rows()>(range, queries, scores); });
  }

  // Adds the weighted values to the softmaxes of the item's heads, one after another.
  void add(const VisibleRange& range, const float* weights, float* softmaxes) {
    for_few_rows(call_.group, [&](auto rows) { add_rows<rows()>(range, weights, softmaxes); });
  }

 private:
  // Two groups of positions are prefetched ahead if a group has fewer bytes than this, else one.
  // More delay an item's beginning. In groups of 8 KB, a layer of 160 positions took 18.6 us with
  // one group ahead, 20.5 us with two, 22 us with four.
  static constexpr std::int64_t kBytesAhead = 8192;
  static constexpr int kMostGroupsAhead = 2;
  static constexpr int kMostGroups = kRangePositions / kLanes;
  // Groups of values that are added together.
  static constexpr int kGroupsOfBlock = Dots::kPositions > kLanes ? Dots::kPositions / kLanes : 1;

  // Returns the item's first entry in the group of position p.
  const std::byte* entry(const VisibleRange& range, const std::byte* entries, int p) const {
    return entries + range.offsets[std::max(p, range.begin)] +
           range.item->first_head * entry_bytes_;
  }

  // Returns the lines of `group` to prefetch while `head` of another group is read. Of that, blocks
  // from `first` on are read, `count` blocks of an entry together.
  HWY_INLINE LinesAhead lines_ahead(const std::byte* group, int head, std::int64_t first,
                                    int count) const {
    if (!reads_slots_) {
      return {group + head * entry_bytes_ + first * kLineBytes, slot_bytes_, kLineBytes,
              call_.prefetch};
    }
    // Lines in the order of memory.
    const std::byte* const from = group + (head * num_blocks_ + first) * kLanes * kLineBytes;
    if (count == 1) return {from, kLineBytes, kLanes * kLineBytes, call_.prefetch};
    return {from, count * kLineBytes, kLineBytes, call_.prefetch};
  }

  // Returns whether the 16 positions from p on can be read in place: all visible, in one block, and
  // without padding of entries.
  bool lie_together(const VisibleRange& range, int p) const {
    if (p < range.begin || p + kLanes > range.end || call_.head_dim != call_.padded_dim()) {
      return false;
    }
    return (range.first_position + p) % call_.block_size + kLanes <= call_.block_size;
  }

  HWY_INLINE EntryGroup find(const VisibleRange& range, const std::byte* entries, int p,
                             bool together) {
    if (HWY_LIKELY(together)) return {entries + range.offsets[p], slot_bytes_};
    return copy(range, entries, p);
  }

  // Copies 16 entries. Two places alternate, so that the 16 entries before them stay.
  HWY_NOINLINE EntryGroup copy(const VisibleRange& range, const std::byte* entries, int p) {
    const std::int64_t stride = num_blocks_ * kLineBytes;
    std::byte* const copies = copies_ + p / kLanes % 2 * kLanes * stride;
    std::memset(copies, 0, kLanes * stride);
    for (int i = std::max(range.begin - p, 0); i < std::min(range.end - p, kLanes); ++i) {
      std::memcpy(copies + i * stride, entries + range.offsets[p + i], entry_bytes_);
    }
    return {copies, stride};
  }

  template <int kRows>
  HWY_NOINLINE void score_rows(const VisibleRange& range, const std::uint32_t* queries,
                               float* scores) {
    const std::int64_t num_units = num_blocks_ * kLanes;
    const std::byte* const* ahead = order_ + groups_ahead_;
    for (int p = first_group(range); p < range.end; p += kLanes, ++ahead) {
      const bool together = lie_together(range, p);
      const std::byte* keys = call_.keys.elements + item_->first_head * entry_bytes_;
      for (int head = 0; head < item_->num_heads; ++head, keys += entry_bytes_) {
        score_group<Dots, kRows>(find(range, keys, p, together), num_blocks_,
                                 queries + head * kRows * num_units, num_units,
                                 scores + head * kRows * kRangePositions + p,
                                 lines_ahead(*ahead, head, 0, 1));
      }
    }
  }

  template <int kRows>
  HWY_NOINLINE void add_rows(const VisibleRange& range, const float* weights, float* softmaxes) {
    const int first = first_group(range);
    const std::byte* const* ahead =
        order_ + groups_ahead_ + (range.end - first + kLanes - 1) / kLanes;
    for (int p = first; p < range.end;) {
      // The groups that are left of a block of Dots::kPositions.
      int count = kGroupsOfBlock - p / kLanes % kGroupsOfBlock;
      count = std::min(count, (range.end - p + kLanes - 1) / kLanes);
      add_positions<kRows>(range, {p, count, ahead}, weights, softmaxes);
      p += count * kLanes;
      ahead += count;
    }
  }

  // Groups of positions from `position` on, and the entries that are prefetched while each is read.
  struct Groups {
    int position;
    int count;
    const std::byte* const* ahead;
  };

  template <int kRows>
  HWY_INLINE void add_positions(const VisibleRange& range, const Groups& groups,
                                const float* weights, float* softmaxes) {
    bool together[kGroupsOfBlock];
    for (int g = 0; g < groups.count; ++g)
      together[g] = lie_together(range, groups.position + g * kLanes);
    const std::byte* values = call_.values.elements + item_->first_head * entry_bytes_;
    for (int head = 0; head < item_->num_heads; ++head, values += entry_bytes_) {
      EntryGroup found[kGroupsOfBlock];
      for (int g = 0; g < groups.count; ++g)
        found[g] = find(range, values, groups.position + g * kLanes, together[g]);
      // A pair of weights has the size of one float.
      const WeighedRows rows{
          .weights = weights + head * kRows * kRangePositions + groups.position / 2,
          .sums = softmaxes + head * Softmax::floats(kRows, call_.padded_dim())};
      std::int64_t block = 0;
      constexpr bool kTakesTwo = kRows <= Dots::template BlockSums<1, 4>::kMostRows;
      for (; kTakesTwo && block + 2 <= num_blocks_; block += 2)
        add_blocks<kRows, 2>(groups, found, head, block, rows);
      for (; block < num_blocks_; ++block) add_blocks<kRows, 1>(groups, found, head, block, rows);
    }
  }

  // Adds kBlocks blocks of 32 dimensions, from `block` on.
  template <int kRows, int kBlocks>
  HWY_INLINE void add_blocks(const Groups& groups, const EntryGroup* found, int head,
                             std::int64_t block, const WeighedRows& rows) const {
    using Sums = typename Dots::template BlockSums<kRows, 2 * kBlocks>;
    if constexpr (kRows > Sums::kMostRows) {
      constexpr int kFirst = Sums::kMostRows;
      add_blocks<kFirst, kBlocks>(groups, found, head, block, rows);
      add_blocks<kRows - kFirst, kBlocks>(
          groups, found, head, block,
          {rows.weights + kFirst * kRangePositions, rows.sums + kFirst * call_.padded_dim()});
    } else {
      ValueGroup of_block[kGroupsOfBlock];
      for (int g = 0; g < groups.count; ++g) {
        of_block[g] = {{found[g].entries + block * kLineBytes, found[g].stride},
                       lines_ahead(groups.ahead[g], head, block, kBlocks)};
      }
      add_groups<Dots, kRows, 2 * kBlocks>(of_block, groups.count,
                                           {rows.weights, rows.sums + block * 2 * kLanes},
                                           call_.padded_dim());
    }
  }

  const AttentionCall& call_;
  const std::int64_t entry_bytes_;
  const std::int64_t slot_bytes_;
  const std::int64_t num_blocks_;  // blocks of 16 words in an entry
  std::byte* copies_;              // [2, 16, num_blocks, 64]
  const AttentionItem* item_ = nullptr;
  bool reads_slots_ = false;  // whether the item has all heads, so whole slots
  int groups_ahead_ = 1;
  // The first entries of groups in the order in which they are read: keys, values, then keys of the
  // next range.
  const std::byte* order_[2 * kMostGroups + kMostGroupsAhead];
};

template <>
class FewRows<Bf16Dots> : public FewRowsOfPairs<Bf16Dots> {
  using FewRowsOfPairs::FewRowsOfPairs;
};
template <>
class FewRows<TileDots> : public FewRowsOfPairs<TileDots> {
  using FewRowsOfPairs::FewRowsOfPairs;
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PAGODA_HAS_PAIR_DOTS
#endif  // the target's pass
