#include "ops/attention/cpu/attention_items.h"

#include <algorithm>

namespace pagoda::cpu {
namespace {

// Items per thread, if items have few rows and so wait for memory. More items would lose more
// prefetches: a thread prefetches past an item's end, but another thread reads there.
constexpr std::int64_t kItemsOfFewRowsPerThread = 4;
// The most bytes of a range's keys, and of its values, if several queries read them. They fit L2
// while the next range is prefetched.
constexpr std::int64_t kRangeBytes = 128 * 1024;
// The fewest bytes of an item's keys and values: fewer take less time than it takes to begin an
// item.
constexpr std::int64_t kLeastBytes = 384 * 1024;
// If all sequences have at most so many elements of keys, and as many of values, single queries are
// not split. One thread finishes so many, in bfloat16 or in codes, before several could begin and
// end.
constexpr std::int64_t kElementsOfOneThread = 64 * 1024;
// Items of so many rows or fewer are not divided further: too few rows would share a load of keys.
constexpr std::int64_t kFewRows = 24;

// How rows share an item. Rows are queries times the heads of a group.
struct RowLimits {
  std::int64_t per_unit;          // rows that are multiplied in the time of one
  int per_item;                   // the most rows: many share a load of keys; scores fit L2
  std::int64_t items_per_thread;  // so that no thread waits for the last item of another
};
constexpr RowLimits kRowsOfVectors = {.per_unit = 12, .per_item = 144, .items_per_thread = 8};
// AMX tiles are so fast that the work done once per item, on its keys, matters more.
constexpr RowLimits kRowsOfTiles = {.per_unit = 16, .per_item = 256, .items_per_thread = 4};

RowLimits limits_of(const AttentionCall& call) {
  return call.has_tiles ? kRowsOfTiles : kRowsOfVectors;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::int64_t units(const AttentionCall& call, std::int64_t rows) {
  return ceil_div(rows, limits_of(call).per_unit);
}

}  // namespace

AttentionPlan::AttentionPlan(const AttentionCall& call, const StepBatch& batch, int num_threads)
    : call_(call),
      num_seqs_(batch.num_seqs),
      num_threads_(num_threads),
      query_start_(batch.query_start.data<std::int32_t>()),
      context_lens_(batch.context_lens.data<std::int32_t>()) {
  std::int64_t cost = 0, positions = 0;
  for (int seq = 0; seq < num_seqs_; ++seq) {
    cost += cost_of(seq);
    positions += context_lens_[seq] - first_visible(context_lens_[seq] - 1, call_.window);
  }
  is_short_ = positions * call_.kv_heads * call_.head_dim <= kElementsOfOneThread;
  budget_ = std::max<std::int64_t>(cost / (limits_of(call).items_per_thread * num_threads), 1);
  const std::int64_t least = ceil_div(kLeastBytes, kRangePositions * bytes_of_entries());
  few_rows_budget_ = std::max({cost / (kItemsOfFewRowsPerThread * num_threads),
                               std::min(least, cost / num_threads), std::int64_t{1}});
  for (int seq = 0; seq < num_seqs_; ++seq) count(split_of(seq));
}

std::int64_t AttentionPlan::cost_of(int seq) const {
  const std::int64_t last = context_lens_[seq] - 1;
  const std::int64_t queries = num_queries_of(seq);
  const std::int64_t ranges = last / kRangePositions -
                              first_visible(last - queries + 1, call_.window) / kRangePositions + 1;
  return ranges * call_.kv_heads * units(call_, queries * call_.group);
}

AttentionPlan::Split AttentionPlan::split_of(int seq) const {
  const std::int64_t last = context_lens_[seq] - 1;
  const int queries = num_queries_of(seq);
  Split split{.num_queries = queries,
              .queries_per_item =
                  std::clamp(limits_of(call_).per_item / call_.group, 1, std::max(queries, 1)),
              .heads_per_item = 1,
              .first_range = first_visible(last - queries + 1, call_.window) / kRangePositions,
              .last_range = last / kRangePositions,
              .ranges_per_item = 0};
  split.ranges_per_item = split.num_ranges();
  const auto rows = [&] { return std::int64_t{split.queries_per_item} * call_.group; };
  // If a context has enough ranges for all threads, all queries share the work on its keys.
  const bool has_ranges =
      split.queries_per_item == queries &&
      split.num_ranges() * call_.kv_heads >= limits_of(call_).items_per_thread * num_threads_;
  while (!has_ranges && rows() > kFewRows && split.num_ranges() * units(call_, rows()) > budget_) {
    split.queries_per_item = (split.queries_per_item + 1) / 2;
  }
  if (split.queries_per_item < queries) return split;
  const std::int64_t per_range = units(call_, rows());
  const std::int64_t budget = per_range == 1 ? few_rows_budget_ : budget_;
  // A single query reads its entries once, fastest if it reads the entries of all heads together.
  const bool is_single = queries == 1;
  const std::int64_t fitting =
      is_single ? call_.kv_heads : 2 * kRangeBytes / (kRangePositions * bytes_of_entries());
  const std::int64_t most_heads =
      std::min(limits_of(call_).per_item / std::max<std::int64_t>(rows(), 1), fitting);
  split.heads_per_item = static_cast<int>(std::clamp<std::int64_t>(most_heads, 1, call_.kv_heads));
  if (is_single && is_short_) return split;
  if (split.num_ranges() * split.heads_per_item * per_range <= budget) return split;
  split.ranges_per_item =
      std::clamp<std::int64_t>(budget / (split.heads_per_item * per_range), 1, split.num_ranges());
  const std::int64_t heads = budget / (split.ranges_per_item * per_range);
  split.heads_per_item = static_cast<int>(std::clamp<std::int64_t>(heads, 1, split.heads_per_item));
  // Gives all items as many heads, because the threads share only a few large items.
  while (is_single && call_.kv_heads % split.heads_per_item != 0) --split.heads_per_item;
  return split;
}

std::int64_t AttentionPlan::partial_floats(const Split& split) const {
  return Softmax::floats(std::int64_t{split.num_queries} * call_.group, call_.padded_dim());
}

void AttentionPlan::count(const Split& split) {
  const std::int64_t blocks = ceil_div(split.num_queries, split.queries_per_item);
  const std::int64_t rows = std::int64_t{split.queries_per_item} * call_.group;
  counts_.items += blocks * ceil_div(call_.kv_heads, split.heads_per_item) *
                   ceil_div(split.num_ranges(), split.ranges_per_item);
  counts_.rows = std::max(counts_.rows, rows);
  counts_.states = std::max(counts_.states, rows * split.heads_per_item);
  counts_.found_floats = std::max(counts_.found_floats,
                                  split.heads_per_item * Softmax::floats(rows, call_.padded_dim()));
  if (!split.is_split()) return;
  counts_.splits += call_.kv_heads;
  counts_.partial_floats += split.num_ranges() * call_.kv_heads * partial_floats(split);
}

AttentionItem AttentionPlan::whole(int seq, const Split& split) const {
  return {.seq = seq,
          .first_token = query_start_[seq],
          .num_queries = split.num_queries,
          .first_position = context_lens_[seq] - split.num_queries,
          .first_head = 0,
          .num_heads = call_.kv_heads,
          .first_range = static_cast<std::int32_t>(split.first_range),
          .last_range = static_cast<std::int32_t>(split.last_range),
          .partial = -1};
}

// Fills in the items, the most expensive first. Chunks of prompts cost most: they are the last
// sequences, and their last queries see most keys.
void AttentionPlan::fill(std::span<AttentionItem> items, std::span<AttentionItem> splits) const {
  auto next = items.begin();
  auto next_split = splits.begin();
  std::int64_t partial = 0;
  for (int seq = num_seqs_ - 1; seq >= 0; --seq) {
    const Split split = split_of(seq);
    AttentionItem item = whole(seq, split);
    const int blocks = static_cast<int>(ceil_div(split.num_queries, split.queries_per_item));
    for (int block = blocks - 1; block >= 0; --block) {
      const int query = block * split.queries_per_item;
      item.first_token = query_start_[seq] + query;
      item.first_position = context_lens_[seq] - split.num_queries + query;
      item.num_queries = std::min(split.queries_per_item, split.num_queries - query);
      const std::int64_t last = (item.first_position + item.num_queries - 1) / kRangePositions;
      for (std::int64_t range = first_visible(item.first_position, call_.window) / kRangePositions;
           range <= last; range += split.ranges_per_item) {
        item.first_range = static_cast<std::int32_t>(range);
        item.last_range =
            static_cast<std::int32_t>(std::min(range + split.ranges_per_item - 1, last));
        for (int head = 0; head < call_.kv_heads; head += split.heads_per_item) {
          item.first_head = head;
          item.num_heads = std::min(split.heads_per_item, call_.kv_heads - head);
          if (split.is_split()) {
            item.partial = partial + ((range - split.first_range) * call_.kv_heads + head) *
                                         partial_floats(split);
          }
          *next++ = item;
        }
      }
    }
    if (!split.is_split()) continue;
    for (int head = 0; head < call_.kv_heads; ++head) {
      *next_split = whole(seq, split);
      next_split->first_head = head;
      next_split->num_heads = 1;
      next_split++->partial = partial + head * partial_floats(split);
    }
    partial += split.num_ranges() * call_.kv_heads * partial_floats(split);
  }
  PAGODA_CHECK(next == items.end() && next_split == splits.end(), "[attention] a miscounted plan");
}

}  // namespace pagoda::cpu
