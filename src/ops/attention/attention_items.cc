#include "ops/attention/attention_items.h"

#include <algorithm>

namespace pagoda::cpu {
namespace {

const std::byte* first_byte(const Tensor& cache) {
  return cache.buffer()->data() +
         cache.offset() * static_cast<std::int64_t>(dtype_size(cache.dtype()));
}

}  // namespace

AttentionItems::AttentionItems(const Tensor& q, const KvView& view, const StepBatch& batch,
                               const AttentionArgs& args, const Tensor& out)
    : batch_(batch),
      query_start_(batch.query_start.data<std::int32_t>()),
      context_lens_(batch.context_lens.data<std::int32_t>()),
      kv_heads_(view.num_kv_heads()),
      entry_bytes_(view.head_dim() * static_cast<std::int64_t>(dtype_size(view.keys.dtype()))),
      prototype_{.q = q.data<float>(),
                 .token_stride = q.stride(0),
                 .head_stride = q.stride(1),
                 .out = out.data<float>(),
                 .out_token_stride = q.extent(1) * q.extent(2),
                 .group = static_cast<int>(q.extent(1) / kv_heads_),
                 .sinks = args.sinks.defined() ? args.sinks.data<float>() : nullptr,
                 .keys = first_byte(view.keys),
                 .values = first_byte(view.values),
                 .slot_stride = kv_heads_ * entry_bytes_,
                 .dtype = view.keys.dtype(),
                 .block_size = view.block_size(),
                 .head_dim = view.head_dim(),
                 .scale = args.scale,
                 .window = args.window,
                 .soft_cap = args.soft_cap} {
  Cursor end;
  for (int seq = 0; seq < batch_.num_seqs; ++seq) advance(seq, end);
  num_items_ = end.item;
  num_partial_floats_ = end.partial_floats;
}

std::int64_t AttentionItems::num_ranges_of(int seq) const {
  if (num_queries_of(seq) != 1) return 1;
  const std::int64_t position = context_lens_[seq] - 1;
  return position / kRangePositions - first_visible(position, prototype_.window) / kRangePositions +
         1;
}

std::int64_t AttentionItems::num_items_of(int seq) const {
  const std::int64_t blocks = (num_queries_of(seq) + kQueriesPerItem - 1) / kQueriesPerItem;
  return blocks * kv_heads_ * num_ranges_of(seq);
}

std::int64_t AttentionItems::partial_floats_of_head(int seq) const {
  const std::int64_t ranges = num_ranges_of(seq);
  return ranges > 1 ? ranges * prototype_.group * (prototype_.head_dim + 2) : 0;
}

void AttentionItems::advance(int seq, Cursor& at) const {
  at.item += num_items_of(seq);
  at.partial_floats += kv_heads_ * partial_floats_of_head(seq);
}

// Items of a sequence lie in the order queries, kv head, range.
AttentionItem AttentionItems::item(int seq, std::int64_t index, const Cursor& at) const {
  const std::int64_t ranges = num_ranges_of(seq);
  const std::int64_t range = index % ranges;
  const std::int64_t kv_head = index / ranges % kv_heads_;
  const std::int64_t first_query = index / ranges / kv_heads_ * kQueriesPerItem;
  const std::int64_t token = query_start_[seq] + first_query;
  const std::int64_t head = kv_head * prototype_.group;
  AttentionItem item = prototype_;
  item.q += token * item.token_stride + head * item.head_stride;
  item.out += token * item.out_token_stride + head * item.head_dim;
  item.num_queries =
      static_cast<int>(std::min<std::int64_t>(num_queries_of(seq) - first_query, kQueriesPerItem));
  item.first_position = context_lens_[seq] - num_queries_of(seq) + first_query;
  if (item.sinks) item.sinks += head;
  item.keys += kv_head * entry_bytes_;
  item.values += kv_head * entry_bytes_;
  item.blocks = batch_.block_tables.data<std::int32_t>() + seq * batch_.block_tables.extent(1);
  const std::int64_t last_position = item.first_position + item.num_queries - 1;
  item.first_range = first_visible(item.first_position, item.window) / kRangePositions;
  item.last_range = last_position / kRangePositions;
  if (ranges > 1) {
    item.partials = partials_ + at.partial_floats + kv_head * partial_floats_of_head(seq) +
                    range * item.group * (item.head_dim + 2);
    item.first_range += range;
    item.last_range = item.first_range;
  }
  return item;
}

}  // namespace pagoda::cpu
