// How the cpu attention divides a step into work items.
//
// The division does not change the arithmetic: a query's positions are divided into ranges of 256
// at absolute multiples of 256; each range has a softmax of its own, and ranges are merged in
// order. An item is some consecutive queries of a sequence, some kv heads with the query heads that
// read them, and some ranges. Few queries of a long context are split into items by ranges, so that
// all threads have work. The softmaxes of these items are merged afterwards. (The split is that of
// Flash-Decoding: Dao et al., 2023.)
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "backend/cpu/prefetch_level.h"
#include "core/half.h"
#include "ops/attention/attention.h"
#include "ops/attention/cpu/attention_path.h"

namespace pagoda::cpu {

inline constexpr int kTilePositions = 64;  // keys that are transposed together
inline constexpr int kRangePositions = 4 * kTilePositions;

// The keys, or the values, of a call. The entry (slot, kv head) begins at slot * slot_bytes + kv
// head * entry_bytes.
struct CallEntries {
  const std::byte* elements = nullptr;
  std::int64_t slot_bytes = 0;
  std::int64_t entry_bytes = 0;
  const bf16* scales = nullptr;  // as in KvView; null if elements are the values themselves
  KvFormat format = KvFormat::kFloat32;
};

// The parameters that all items of a call share.
struct AttentionCall {
  AttentionPath path = AttentionPath::kFloats;
  const float* q = nullptr;
  std::int64_t token_stride = 0;
  std::int64_t head_stride = 0;
  float* out = nullptr;  // [tokens, heads * head_dim]
  const float* sinks = nullptr;

  CallEntries keys;
  CallEntries values;
  const std::int32_t* first_slots = nullptr;  // [seqs] as in StepBatch, or null
  const std::int32_t* block_tables = nullptr;
  std::int64_t max_blocks = 0;
  std::int64_t block_size = 0;

  int kv_heads = 0;
  int group = 0;  // query heads of a kv head
  std::int64_t head_dim = 0;
  float scale = 0;
  int window = 0;
  float soft_cap = 0;

  PrefetchLevel prefetch = PrefetchLevel::kFirst;  // level for entries that few rows read
  bool has_avx_vnni = false;                       // for products of codes on AVX2
  bool has_tiles = false;                          // AMX tiles for these keys and values

  float* partials = nullptr;
  // Returns the floats from the sums of a row to the sums of the next row: whole pairs of the
  // widest vectors. For int4 values, the dimensions of low nibbles and of high nibbles are padded
  // separately.
  std::int64_t padded_dim() const {
    const std::int64_t halves = values.format == KvFormat::kInt4 ? 2 : 1;
    return (head_dim / halves + 31) / 32 * 32 * halves;
  }
};

struct AttentionItem {
  std::int32_t seq;
  std::int32_t first_token;  // index in the batch
  std::int32_t num_queries;
  std::int32_t first_position;  // position of the first query
  std::int32_t first_head;      // kv heads
  std::int32_t num_heads;
  std::int32_t first_range;
  std::int32_t last_range;  // inclusive
  // The index in the call's partials of the softmax of the first range and first head. The
  // softmaxes of the other heads follow. The next range's begin kv_heads softmaxes later. -1: the
  // item merges its ranges and writes the output.
  std::int64_t partial;
};

// Returns the first position that a query at `position` sees.
inline std::int64_t first_visible(std::int64_t position, int window) {
  return window > 0 && position + 1 > window ? position + 1 - window : 0;
}

// An unfinished softmax of `rows` rows in one block of memory. Weights, and so their totals and the
// sums of weighted values, are relative to each row's largest score: 2^(score - largest).
struct Softmax {
  float* sums = nullptr;     // [rows, padded_dim], dimensions in the target's order
  float* largest = nullptr;  // [rows]
  float* totals = nullptr;   // [rows]

  // Pads a number of rows, with one float each, to whole vectors.
  static std::int64_t padded(std::int64_t rows) { return (rows + 15) / 16 * 16; }
  static std::int64_t floats(std::int64_t rows, std::int64_t padded_dim) {
    return rows * padded_dim + 2 * padded(rows);
  }
  static Softmax in(float* memory, std::int64_t rows, std::int64_t padded_dim) {
    float* const largest = memory + rows * padded_dim;
    return {.sums = memory, .largest = largest, .totals = largest + padded(rows)};
  }
};

// The items of a step, made in two passes: count() counts them, fill() writes them to the caller's
// memory.
class AttentionPlan {
 public:
  // Plans a call. `num_threads` decides how finely long contexts are divided, but changes no
  // result.
  AttentionPlan(const AttentionCall& call, const StepBatch& batch, int num_threads);

  struct Counts {
    std::int64_t items = 0;
    std::int64_t splits = 0;  // kv heads of sequences that were split into ranges
    std::int64_t partial_floats = 0;
    std::int64_t rows = 0;          // most rows of an item in one kv head
    std::int64_t states = 0;        // most rows of an item over all its kv heads
    std::int64_t found_floats = 0;  // most floats of an item's softmaxes of one range
  };
  const Counts& counts() const { return counts_; }
  // Writes the plan. items [counts().items]: the most expensive first. splits [counts().splits]:
  // each has one kv head and all ranges, whose partials are to be merged.
  void fill(std::span<AttentionItem> items, std::span<AttentionItem> splits) const;

 private:
  // How a sequence is divided into items.
  struct Split {
    int num_queries;
    int queries_per_item;
    int heads_per_item;
    std::int64_t first_range;  // first range of all queries
    std::int64_t last_range;
    std::int64_t ranges_per_item;

    std::int64_t num_ranges() const { return last_range - first_range + 1; }
    bool is_split() const { return ranges_per_item < num_ranges(); }
  };
  // Returns the bytes of a key and a value.
  std::int64_t bytes_of_entries() const {
    return call_.keys.entry_bytes + call_.values.entry_bytes;
  }
  int num_queries_of(int seq) const { return query_start_[seq + 1] - query_start_[seq]; }
  std::int64_t cost_of(int seq) const;
  Split split_of(int seq) const;
  AttentionItem whole(int seq, const Split& split) const;
  std::int64_t partial_floats(const Split& split) const;  // for a range and kv head
  void count(const Split& split);

  const AttentionCall& call_;
  const int num_seqs_;
  const int num_threads_;
  const std::int32_t* query_start_;
  const std::int32_t* context_lens_;
  bool is_short_ = false;             // single queries are not split
  std::int64_t budget_ = 1;           // cost of an item: units of rows * kv heads * ranges
  std::int64_t few_rows_budget_ = 1;  // budget_ for items whose rows are one unit
  Counts counts_;
};

// The queue from which threads claim items. Every second thread begins with items of one query.
// These wait for memory, while the other threads multiply.
class AttentionQueue {
 public:
  // Makes a queue of `items`, in which items of several queries come first.
  AttentionQueue(std::span<const AttentionItem> items, int num_threads)
      : num_threads_(num_threads) {
    const auto is_one = [](const AttentionItem& item) { return item.num_queries == 1; };
    const auto many = std::find_if(items.begin(), items.end(), is_one) - items.begin();
    parts_[0].items = items.first(many);
    parts_[1].items = items.subspan(many);
  }

  // Claims the next item for a thread; null if none is left.
  const AttentionItem* claim(int thread) {
    const AttentionItem* item = parts_[thread % 2].claim();
    return item ? item : parts_[1 - thread % 2].claim();
  }
  // Claims an item for a thread that has not finished the one before. Returns null if only a few
  // are left: these are for idle threads.
  const AttentionItem* claim_ahead(int thread) {
    return parts_[0].num_left() + parts_[1].num_left() > num_threads_ ? claim(thread) : nullptr;
  }

 private:
  struct Part {
    std::span<const AttentionItem> items;
    std::atomic<std::int64_t> next{0};

    std::int64_t num_left() const {
      const std::int64_t left =
          static_cast<std::int64_t>(items.size()) - next.load(std::memory_order_relaxed);
      return std::max<std::int64_t>(left, 0);
    }
    const AttentionItem* claim() {
      if (num_left() == 0) return nullptr;
      const auto index = static_cast<std::size_t>(next.fetch_add(1, std::memory_order_relaxed));
      return index < items.size() ? &items[index] : nullptr;
    }
  };

  const int num_threads_;
  std::array<Part, 2> parts_;
};

}  // namespace pagoda::cpu
