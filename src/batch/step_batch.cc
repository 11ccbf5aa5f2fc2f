#include "batch/step_batch.h"

#include <algorithm>
#include <utility>

namespace pagoda {

void HostBatch::clear() {
  clear_step();
  block_tables.clear();
  max_blocks = 0;
}

void HostBatch::clear_step() {
  for (auto* array : {&token_ids, &token_source, &positions, &query_start, &context_lens,
                      &logits_rows, &slot_mapping, &first_slots}) {
    array->clear();
  }
  block_copies.clear();
  num_decodes = 0;
}

StepBatch upload(Exec& exec, const HostBatch& host, Tensor block_tables) {
  const std::int64_t tokens = host.num_tokens();
  const std::int64_t seqs = host.num_seqs();
  const std::int64_t rows = static_cast<std::int64_t>(host.logits_rows.size());
  PAGODA_CHECK(static_cast<std::int64_t>(host.positions.size()) == tokens &&
                   static_cast<std::int64_t>(host.slot_mapping.size()) == tokens &&
                   (host.token_source.empty() ||
                    static_cast<std::int64_t>(host.token_source.size()) == tokens) &&
                   static_cast<std::int64_t>(host.query_start.size()) == seqs + 1 &&
                   (host.first_slots.empty() ||
                    static_cast<std::int64_t>(host.first_slots.size()) == seqs) &&
                   static_cast<std::int64_t>(host.block_tables.size()) >= seqs * host.max_blocks,
               "[step_batch] the host arrays contradict one another");
  StepBatch batch;
  batch.host = &host;
  batch.num_tokens = static_cast<int>(tokens);
  batch.num_seqs = static_cast<int>(seqs);
  batch.num_decodes = host.num_decodes;
  batch.num_rows = static_cast<int>(rows);
  for (int i = 0; i < batch.num_seqs; ++i) {
    batch.max_query_len =
        std::max(batch.max_query_len, host.query_start[i + 1] - host.query_start[i]);
    batch.max_context_len = std::max(batch.max_context_len, host.context_lens[i]);
  }
  const auto put = [&exec](const std::vector<std::int32_t>& values, const Shape& shape) {
    return exec.upload<std::int32_t>(values, shape);
  };
  batch.token_ids = put(host.token_ids, {tokens});
  if (!host.token_source.empty()) batch.token_source = put(host.token_source, {tokens});
  batch.positions = put(host.positions, {tokens});
  batch.query_start = put(host.query_start, {seqs + 1});
  batch.context_lens = put(host.context_lens, {seqs});
  if (rows > 0) batch.logits_rows = put(host.logits_rows, {rows});
  batch.slot_mapping = put(host.slot_mapping, {tokens});
  if (!host.first_slots.empty()) batch.first_slots = put(host.first_slots, {seqs});
  batch.block_tables =
      block_tables.defined()
          ? std::move(block_tables)
          : exec.upload<std::int32_t>(std::span(host.block_tables).first(seqs * host.max_blocks),
                                      {seqs, host.max_blocks});
  if (!host.block_copies.empty()) {
    static_assert(sizeof(BlockCopy) == 3 * sizeof(std::int32_t));
    batch.block_copies =
        exec.upload(DType::kInt32, {static_cast<std::int64_t>(host.block_copies.size()), 3},
                    std::as_bytes(std::span(host.block_copies)));
  }
  return batch;
}

}  // namespace pagoda
