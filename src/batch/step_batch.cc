#include "batch/step_batch.h"

#include <algorithm>
#include <utility>

#include "tensor/upload_packet.h"

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
  const std::int64_t tables = host.num_tables;
  const std::int64_t rows = static_cast<std::int64_t>(host.logits_rows.size());
  PAGODA_CHECK(
      static_cast<std::int64_t>(host.positions.size()) == tokens &&
          static_cast<std::int64_t>(host.slot_mapping.size()) == tables * tokens &&
          (host.token_source.empty() ||
           static_cast<std::int64_t>(host.token_source.size()) == tokens) &&
          static_cast<std::int64_t>(host.query_start.size()) == seqs + 1 &&
          (host.first_slots.empty() ||
           static_cast<std::int64_t>(host.first_slots.size()) == tables * seqs) &&
          static_cast<std::int64_t>(host.block_tables.size()) >= tables * seqs * host.max_blocks &&
          (tables == 1 || block_tables.defined()),
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
  UploadPacket packet;
  packet.add(host.token_ids, batch.token_ids);
  if (!host.token_source.empty()) packet.add(host.token_source, batch.token_source);
  packet.add(host.positions, batch.positions);
  packet.add(host.query_start, batch.query_start);
  packet.add(host.context_lens, batch.context_lens);
  if (rows > 0) packet.add(host.logits_rows, batch.logits_rows);
  packet.add(host.slot_mapping, batch.slot_mapping);
  if (!host.first_slots.empty()) packet.add(host.first_slots, batch.first_slots);
  if (block_tables.defined()) {
    batch.block_tables = std::move(block_tables);
  } else {
    packet.add(std::span(host.block_tables).first(seqs * host.max_blocks), {seqs, host.max_blocks},
               batch.block_tables);
  }
  if (!host.block_copies.empty()) {
    static_assert(sizeof(BlockCopy) == 3 * sizeof(std::int32_t));
    const auto* const words = reinterpret_cast<const std::int32_t*>(host.block_copies.data());
    const auto copies = static_cast<std::int64_t>(host.block_copies.size());
    packet.add(std::span(words, 3 * host.block_copies.size()), {copies, 3}, batch.block_copies);
  }
  packet.upload(exec);
  return batch;
}

void split_tables(const StepBatch& all, std::vector<StepBatch>& by_table) {
  const std::int64_t num_tables = all.host->num_tables;
  const std::int64_t num_rows = all.block_tables.extent(0) / num_tables;
  by_table.clear();
  by_table.reserve(num_tables);
  for (std::int64_t table = 0; table < num_tables; ++table) {
    const auto part_of = [&](const Tensor& tensor, std::int64_t rows) {
      return tensor.slice(0, table * rows, (table + 1) * rows);
    };
    StepBatch& batch = by_table.emplace_back(all);
    batch.slot_mapping = part_of(all.slot_mapping, all.num_tokens);
    if (all.first_slots.defined()) batch.first_slots = part_of(all.first_slots, all.num_seqs);
    batch.block_tables = part_of(all.block_tables, num_rows);
  }
}

}  // namespace pagoda
