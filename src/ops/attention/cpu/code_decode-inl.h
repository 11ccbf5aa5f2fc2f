// The cpu attention on codes for few rows, as in decodes, on machines that multiply pairs of
// integers. Sums are exact, as in code_dots-inl.h, so the bits are the same.
//
// As in bf16_decode-inl.h, keys and values are read once, in place, sixteen positions at a time.
// Meanwhile lines of later positions are prefetched in the order of memory.
#if defined(PAGODA_CODE_DECODE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_CODE_DECODE_INL_H
#undef PAGODA_CODE_DECODE_INL_H
#else
#define PAGODA_CODE_DECODE_INL_H
#endif

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"
#include "ops/attention/cpu/bf16_decode-inl.h"
#include "ops/attention/cpu/code_dots-inl.h"

#if PAGODA_HAS_PAIR_DOTS

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Loads 32 bytes of each of two entries, side by side.
HWY_INLINE VWords load_halves(const std::byte* low, const std::byte* high) {
  const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low));
  const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(high));
  VWords words{_mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1)};
  asm("" : "+v"(words.raw));
  return words;
}

// Adds the dot_shorts() of words and a pair to sum. The instruction broadcasts the pair from
// memory: few rows use each pair once.
HWY_INLINE void add_dots(VInts& sum, VWords words, const std::uint32_t& pair) {
  asm("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(sum.raw) : "v"(words.raw), "m"(pair));
}

// Computes rows[w] = word w of 16 entries of 8 words; load(i) returns the words of entries i and
// i + 8.
template <typename Load>
HWY_INLINE void transpose_halves(Load&& load, VWords* rows) {
  PAGODA_UNROLL
  for (int i = 0; i < 8; i += 4) {
    transpose_fours(load, i, rows);
  }
  const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
  const __m512i odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  PAGODA_UNROLL
  for (int i = 0; i < 4; ++i) {
    const VWords low = rows[i], high = rows[4 + i];
    rows[i] = VWords{_mm512_permutex2var_epi64(low.raw, even, high.raw)};
    rows[4 + i] = VWords{_mm512_permutex2var_epi64(low.raw, odd, high.raw)};
  }
}

// The lines that are prefetched while entries are read: one for each 64 bytes that are read.
struct CodeLines {
  const std::byte* at;
  std::int64_t entry_step;  // bytes from an entry's lines to the next entry's; 0: memory order
  PrefetchLevel level;
};

template <KvFormat kKeys, KvFormat kValues>
class FewRows<CodeDots<kKeys, kValues>> {
  using Dots = CodeDots<kKeys, kValues>;
  using Coding = typename Dots::Coding;
  static constexpr int kTileWords = Coding::kTileWords;

 public:
  // Takes memory for copies of 16 entries, padded to lines.
  FewRows(const AttentionCall& call, std::byte* copies)
      : call_(call),
        keys_(call.keys),
        values_(call.values),
        units_(Coding::padded_words(call)),
        padded_dim_(call.padded_dim()),
        copies_(copies) {}

  static bool takes(const AttentionCall& call, const AttentionItem& item) {
    return item.num_queries == 1 && call.group <= kMostFewRows;
  }

  // Prefetches the scales and first groups of a range, if no other range was read before it.
  void fetch_first(const VisibleRange& range) {
    begin(range, VisibleRange());
    for (const CallEntries* entries : {&keys_, &values_})
      fetch_scales(range, *entries, 0, range.num_scale_runs);
    for (int group = 0; group < groups_ahead_; ++group) {
      for (int i = 0; i < kLanes; ++i) {
        const std::byte* const entry = order_[group] + i * keys_.slot_bytes;
        const std::int64_t bytes = item_->num_heads * keys_.entry_bytes;
        for (std::int64_t at = 0; at < bytes; at += kLineBytes) prefetch(entry + at);
      }
    }
  }

  // Prepares to read `range` next, and then `after`, if that has an item.
  void begin(const VisibleRange& range, const VisibleRange& after) {
    item_ = range.item;
    const std::int64_t bytes =
        kLanes * item_->num_heads * (keys_.entry_bytes + values_.entry_bytes);
    groups_ahead_ =
        static_cast<int>(std::clamp<std::int64_t>(2 * kBytesAhead / bytes, 1, kMostGroupsAhead));
    const std::byte** to = order_;
    for (int p = first_group(range); p < range.end; p += kLanes)
      *to++ = entry(range, keys_, range.offsets, p);
    for (int p = first_group(range); p < range.end; p += kLanes)
      *to++ = entry(range, values_, range.value_offsets, p);
    num_groups_ = static_cast<int>(to - order_) / 2;
    const std::byte* const last = to[-1];
    for (int i = 0; i < groups_ahead_; ++i) {
      const int p = first_group(after) + i * kLanes;
      *to++ = after.item && p < after.end ? entry(after, keys_, after.offsets, p) : last;
    }
    after_ = after.item ? &after : nullptr;
    runs_a_group_ = (after.num_scale_runs + num_groups_ - 1) / num_groups_;
  }

  // Computes scores: [heads * rows, kRangePositions].
  void score(const VisibleRange& range, const std::uint32_t* queries, const Coding& coding,
             float* scores) {
    for_few_rows(call_.group,
                 [&](auto rows) { score_rows<rows()>(range, queries, coding, scores); });
  }

  // Adds the weighted values to the softmaxes of the item's heads, one after another.
  void add(const VisibleRange& range, const float* weights, float* softmaxes) {
    for_few_rows(call_.group, [&](auto rows) { add_rows<rows()>(range, weights, softmaxes); });
  }

 private:
  // Half as many bytes ahead took 119 us instead of 103; with shuffled blocks, 153 us instead of
  // 129.
  static constexpr std::int64_t kBytesAhead = 16384;
  static constexpr int kMostGroupsAhead = 8;
  static constexpr int kMostGroups = kRangePositions / kLanes;
  static constexpr std::int64_t kHalfLine = kLineBytes / 2;
  static constexpr std::int64_t kMostScaleBytes = 1024;  // prefetched of a block

  HWY_INLINE void prefetch(const std::byte* line) const {
    LinesAhead{.level = call_.prefetch}.fetch(line);
  }

  // Prefetches the scales of all heads in `count` of a range's runs, from run `first` on.
  HWY_INLINE void fetch_scales(const VisibleRange& range, const CallEntries& entries, int first,
                               int count) const {
    const std::int64_t num_scales = traits_of(entries.format).num_scales;
    const std::int64_t head_scales = num_scales * call_.block_size;
    const std::int64_t bytes =
        std::min<std::int64_t>(range.item->num_heads * head_scales * 2, kMostScaleBytes);
    const int end = std::min(first + count, range.num_scale_runs);
    for (int i = first; i < end; ++i) {
      const auto* const from = reinterpret_cast<const std::byte*>(
          entries.scales +
          (range.scale_runs[i].block * call_.kv_heads + range.item->first_head) * head_scales);
      for (std::int64_t at = 0; at < bytes; at += kLineBytes) prefetch(from + at);
    }
  }

  // Prefetches one share of the next range's scales: each group has a share, here group `index`.
  HWY_INLINE void fetch_scales_ahead(const CallEntries& entries, int index) const {
    if (after_) fetch_scales(*after_, entries, index * runs_a_group_, runs_a_group_);
  }

  // Returns the item's first entry in the group of position p.
  const std::byte* entry(const VisibleRange& range, const CallEntries& entries,
                         const std::int64_t* offsets, int p) const {
    return entries.elements + offsets[std::max(p, range.begin)] +
           range.item->first_head * entries.entry_bytes;
  }

  // Returns the lines to prefetch while the first head of group `index` is read. Sets `head_step`
  // to the distance from one head's lines to the next head's. Each head prefetches its part of the
  // group that is read groups_ahead_ later.
  HWY_INLINE CodeLines lines_ahead(int index, std::int64_t& head_step) const {
    const int ahead = index + groups_ahead_;
    const bool is_value = ahead >= num_groups_ && ahead < 2 * num_groups_;
    const std::int64_t bytes = is_value ? values_.entry_bytes : keys_.entry_bytes;
    const std::int64_t slot_bytes = is_value ? values_.slot_bytes : keys_.slot_bytes;
    const bool reads_slots = item_->num_heads * bytes == slot_bytes;
    head_step = reads_slots ? kLanes * bytes : bytes;
    return {order_[ahead], reads_slots ? 0 : slot_bytes, call_.prefetch};
  }

  // Returns whether the 16 positions from p on can be read in place: all visible, in one block, and
  // entries of whole half lines.
  bool lie_together(const VisibleRange& range, const CallEntries& entries, int p) const {
    if (p < range.begin || p + kLanes > range.end || entries.entry_bytes % kHalfLine != 0)
      return false;
    return (range.first_position + p) % call_.block_size + kLanes <= call_.block_size;
  }

  HWY_INLINE EntryGroup find(const VisibleRange& range, const CallEntries& entries,
                             const std::int64_t* offsets, int head, int p, bool together) {
    const std::byte* const from =
        entries.elements + (item_->first_head + head) * entries.entry_bytes;
    if (HWY_LIKELY(together)) return {from + offsets[p], entries.slot_bytes};
    return copy(range, from, offsets, entries.entry_bytes, p);
  }

  HWY_NOINLINE EntryGroup copy(const VisibleRange& range, const std::byte* entries,
                               const std::int64_t* offsets, std::int64_t bytes, int p) {
    const std::int64_t stride = (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
    std::memset(copies_, 0, kLanes * stride);
    for (int i = std::max(range.begin - p, 0); i < std::min(range.end - p, kLanes); ++i)
      std::memcpy(copies_ + i * stride, entries + offsets[p + i], bytes);
    return {copies_, stride};
  }

  template <int kRows>
  HWY_NOINLINE void score_rows(const VisibleRange& range, const std::uint32_t* queries,
                               const Coding& coding, float* scores) {
    int index = 0;
    for (int p = first_group(range); p < range.end; p += kLanes, ++index) {
      fetch_scales_ahead(keys_, index);
      const bool together = lie_together(range, keys_, p);
      std::int64_t head_step;
      CodeLines lines = lines_ahead(index, head_step);
      for (int head = 0; head < item_->num_heads; ++head, lines.at += head_step) {
        const int state = head * kRows;
        score_group<kRows>(find(range, keys_, range.offsets, head, p, together),
                           queries + state * units_, coding.score_scales(head, state, p),
                           scores + state * kRangePositions + p, lines);
      }
    }
  }

  // Prefetches the next line of `lines`.
  HWY_INLINE void fetch(CodeLines& lines) const {
    prefetch(lines.at);
    lines.at = step(lines.at, lines.entry_step == 0 ? kLineBytes : lines.entry_step);
  }

  // Scores kRows queries with 16 keys.
  template <int kRows>
  HWY_INLINE void score_group(const EntryGroup& keys, const std::uint32_t* queries,
                              const typename Coding::ScoreScales& scales, float* scores,
                              CodeLines lines) const {
    SumTile<Dots, kRows, 2> sums;
    sums.clear();
    const std::byte* block = keys.entries;
    const std::byte* const ahead = lines.at;
    std::int64_t left = keys_.entry_bytes;
    for (; left > kHalfLine; left -= kLineBytes, block += kLineBytes) {
      if (lines.entry_step != 0) lines.at = ahead + (block - keys.entries);
      const std::byte* key = block;
      VWords words[kLanes];
      const auto load = [&](int /*i*/) HWY_ATTR {
        fetch(lines);
        const VWords loaded = load_line(key);
        key = step(key, keys.stride);
        return loaded;
      };
      transpose(load, words, [] {});
      add_words<kRows, kLanes>(words, queries, sums);
      queries += kLanes * kTileWords;
    }
    if (left > 0) {
      if (lines.entry_step != 0) lines.at = ahead + (block - keys.entries);
      const std::byte* low = block;
      VWords words[kLanes / 2];
      const auto load = [&](int /*i*/) HWY_ATTR {
        fetch(lines);
        if (lines.entry_step != 0) fetch(lines);
        const VWords loaded = load_halves(low, low + 8 * keys.stride);
        low = step(low, keys.stride);
        return loaded;
      };
      transpose_halves(load, words);
      add_words<kRows, kLanes / 2>(words, queries, sums);
    }
    SumTile<Dots, kRows, 1> both;
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) both.sums[r][0] = hn::Add(sums.sums[r][0], sums.sums[r][1]);
    both.store_scores(scores, scales);
  }

  template <int kRows, int kWords>
  HWY_INLINE void add_words(const VWords* words, const std::uint32_t* queries,
                            SumTile<Dots, kRows, 2>& sums) const {
    PAGODA_UNROLL
    for (int i = 0; i < kWords; ++i) {
      VWords pairs[kTileWords];
      widen_word<kKeys>(words[i], pairs);
      PAGODA_UNROLL
      for (int t = 0; t < kTileWords; ++t) {
        PAGODA_UNROLL
        for (int r = 0; r < kRows; ++r)
          add_dots(sums.sums[r][t % 2], pairs[t], queries[i * kTileWords + t + r * units_]);
      }
    }
  }

  template <int kRows>
  HWY_NOINLINE void add_rows(const VisibleRange& range, const float* weights, float* softmaxes) {
    int index = num_groups_;
    for (int p = first_group(range); p < range.end; p += kLanes, ++index) {
      fetch_scales_ahead(values_, index - num_groups_);
      const bool together = lie_together(range, values_, p);
      std::int64_t head_step;
      CodeLines lines = lines_ahead(index, head_step);
      for (int head = 0; head < item_->num_heads; ++head, lines.at += head_step) {
        const EntryGroup group = find(range, values_, range.value_offsets, head, p, together);
        // A pair of weights has the size of one float.
        const WeighedRows rows{.weights = weights + head * kRows * kRangePositions + p / 2,
                               .sums = softmaxes + head * Softmax::floats(kRows, padded_dim_)};
        add_entries<kRows>(group, rows, lines);
      }
    }
  }

  // Adds the weighted values of 16 positions, as many chunks at a time as registers have room for
  // their sums.
  template <int kRows>
  HWY_INLINE void add_entries(const EntryGroup& values, const WeighedRows& rows,
                              const CodeLines& lines) const {
    const std::int64_t chunks = (values_.entry_bytes + kChunkBytes - 1) / kChunkBytes;
    const std::int64_t half = padded_dim_ / 2;
    std::int64_t chunk = 0;
    if constexpr (kValues == KvFormat::kInt4) {
      for (; chunk < chunks; ++chunk) {
        const std::int64_t at = chunk * kChunkBytes;
        float* const sums = rows.sums + at;
        if constexpr (kRows <= 5) {
          add_chunks<kRows, 1, 0, 4>(values, at, rows.weights, sums, half, lines);
        } else {
          add_chunks<kRows, 1, 0, 2>(values, at, rows.weights, sums, half, lines);
          add_chunks<kRows, 1, 2, 2>(values, at, rows.weights, sums, half, lines);
        }
      }
    } else {
      for (; kRows <= 5 && chunk + 2 <= chunks; chunk += 2) {
        const std::int64_t at = chunk * kChunkBytes;
        add_chunks<kRows, 2, 0, 4>(values, at, rows.weights, rows.sums + at, half, lines);
      }
      for (; chunk < chunks; ++chunk) {
        const std::int64_t at = chunk * kChunkBytes;
        add_chunks<kRows, 1, 0, 2>(values, at, rows.weights, rows.sums + at, half, lines);
      }
    }
  }

  // Adds kVectors vectors of the values in kChunks chunks, from vector kFirst on. For int4, the
  // sums of a chunk's second two vectors are `half` further on.
  template <int kRows, int kChunks, int kFirst, int kVectors>
  HWY_INLINE void add_chunks(const EntryGroup& values, std::int64_t at, const float* row_weights,
                             float* to, std::int64_t half, const CodeLines& lines) const {
    constexpr bool kIsInt4 = kValues == KvFormat::kInt4;
    SumTile<Dots, kRows, kVectors> sums;
    const auto place = [&](int r, int v) {
      const int vector = kFirst + v;
      const std::int64_t offset =
          kIsInt4 ? vector / 2 * half + vector % 2 * kLanes : vector * std::int64_t{kLanes};
      return to + r * padded_dim_ + offset;
    };
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v)
        sums.sums[r][v] = hn::BitCast(DInts(), hn::LoadU(D(), place(r, v)));
    }
    const auto* const weights = reinterpret_cast<const std::uint32_t*>(row_weights);
    const std::byte* even = values.entries + at;
    const std::byte* ahead = lines.at + (lines.entry_step == 0 ? at * kLanes : at);
    for (int pair = 0; pair < kLanes / 2; ++pair) {
      const std::byte* const odd = even + values.stride;
      VWords all[kChunks * kChunkVectors<kValues>];
      PAGODA_UNROLL
      for (int c = 0; c < kChunks; ++c) {
        pair_values<kValues>(even + c * kChunkBytes, odd + c * kChunkBytes,
                             all + c * kChunkVectors<kValues>);
      }
      if (lines.entry_step == 0) {
        PAGODA_UNROLL
        for (int c = 0; c < kChunks && kFirst == 0; ++c, ahead += kLineBytes) prefetch(ahead);
      } else if (kFirst == 0) {
        prefetch(ahead);
        prefetch(ahead + lines.entry_step);
        ahead += 2 * lines.entry_step;
      }
      sums.add(weights + pair, kRangePositions, all + kFirst);
      even = odd + values.stride;
    }
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v)
        hn::StoreU(hn::BitCast(D(), sums.sums[r][v]), D(), place(r, v));
    }
  }

  const AttentionCall& call_;
  const CallEntries keys_;
  const CallEntries values_;
  const std::int64_t units_;  // units from a query to the next
  const std::int64_t padded_dim_;
  std::byte* copies_;
  const AttentionItem* item_ = nullptr;
  int groups_ahead_ = 1;
  int num_groups_ = 0;
  const VisibleRange* after_ = nullptr;  // the next range, if it has an item
  int runs_a_group_ = 0;                 // runs of the next range's scales per group
  // The first entries of groups in the order in which they are read: keys, values, then keys of the
  // next range.
  const std::byte* order_[2 * kMostGroups + kMostGroupsAhead];
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PAGODA_HAS_PAIR_DOTS
#endif  // the target's pass
