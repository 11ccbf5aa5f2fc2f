// How the cpu attention cuts a step into pieces of work, and what a piece is.
//
// The arithmetic is fixed apart from the cut: a query's keys are walked in tiles of 32 at absolute
// multiples of 32; sixteen tiles are a range, which has a softmax of its own; ranges are merged in
// order. An item is up to 16 consecutive queries of a sequence with the heads of one kv head, over
// all their ranges; only a single query of a long context is cut further, into its ranges, so that
// all threads have work. (The split is that of Flash-Decoding: Dao et al., 2023.)
#pragma once

#include <cstdint>

#include "ops/attention/attention.h"

namespace pagoda::cpu {

inline constexpr int kTilePositions = 32;
inline constexpr int kRangePositions = 16 * kTilePositions;
inline constexpr int kQueriesPerItem = 16;

struct AttentionItem {
  const float* q = nullptr;  // the first query's first head of the group
  std::int64_t token_stride = 0;
  std::int64_t head_stride = 0;
  float* out = nullptr;  // likewise
  std::int64_t out_token_stride = 0;
  int num_queries = 0;
  int group = 0;  // query heads
  std::int64_t first_position = 0;
  const float* sinks = nullptr;  // [group], or null

  const std::byte* keys = nullptr;  // entry (slot, kv head) begins at slot * slot_stride
  const std::byte* values = nullptr;
  std::int64_t slot_stride = 0;  // bytes
  DType dtype = DType::kFloat32;
  const std::int32_t* blocks = nullptr;
  std::int64_t block_size = 0;
  std::int64_t head_dim = 0;

  float scale = 0;
  int window = 0;
  float soft_cap = 0;

  std::int64_t first_range = 0;  // of those that the queries see
  std::int64_t last_range = 0;   // inclusive
  // Null where the item walks all ranges. Else [ranges, group, head_dim + 2]: each range's sums,
  // maximum and total.
  float* partials = nullptr;
};

// The first position that a query at `position` sees.
inline std::int64_t first_visible(std::int64_t position, int window) {
  return window > 0 && position + 1 > window ? position + 1 - window : 0;
}

class AttentionItems {
 public:
  AttentionItems(const Tensor& q, const KvView& view, const StepBatch& batch,
                 const AttentionArgs& args, const Tensor& out);

  int group() const { return prototype_.group; }
  std::int64_t num_items() const { return num_items_; }
  std::int64_t num_partial_floats() const { return num_partial_floats_; }
  // Memory for them; before any visit.
  void set_partials(float* partials) { partials_ = partials; }

  // Visits every `step`th item from `first` on: neighbours cost about the same, and later queries
  // more.
  template <typename Visit>
  void for_each(std::int64_t first, std::int64_t step, Visit&& visit) const {
    Cursor at;
    for (int seq = 0; seq < batch_.num_seqs; ++seq) {
      const std::int64_t count = num_items_of(seq);
      for (; first < at.item + count; first += step) visit(item(seq, first - at.item, at));
      advance(seq, at);
    }
  }

  // Visits, for each kv head of each sequence that was cut into ranges, the item of all of them.
  template <typename Visit>
  void for_each_cut(Visit&& visit) const {
    Cursor at;
    for (int seq = 0; seq < batch_.num_seqs; ++seq) {
      const std::int64_t ranges = num_ranges_of(seq);
      for (std::int64_t head = 0; ranges > 1 && head < kv_heads_; ++head) {
        AttentionItem whole = item(seq, head * ranges, at);
        whole.last_range = whole.first_range + ranges - 1;
        visit(whole);
      }
      advance(seq, at);
    }
  }

 private:
  struct Cursor {
    std::int64_t item = 0;            // the sequence's first
    std::int64_t partial_floats = 0;  // before the sequence's
  };

  std::int64_t num_queries_of(int seq) const { return query_start_[seq + 1] - query_start_[seq]; }
  // The ranges that a sequence's queries are cut into; 1 where they are not.
  std::int64_t num_ranges_of(int seq) const;
  std::int64_t num_items_of(int seq) const;
  std::int64_t partial_floats_of_head(int seq) const;
  void advance(int seq, Cursor& at) const;
  AttentionItem item(int seq, std::int64_t index, const Cursor& at) const;

  const StepBatch& batch_;
  const std::int32_t* query_start_;
  const std::int32_t* context_lens_;
  std::int64_t kv_heads_;
  std::int64_t entry_bytes_;
  AttentionItem prototype_;
  std::int64_t num_items_ = 0;
  std::int64_t num_partial_floats_ = 0;
  float* partials_ = nullptr;
};

}  // namespace pagoda::cpu
