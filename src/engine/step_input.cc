#include "engine/step_input.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace pagoda {

StepInput::StepInput(int block_size, std::vector<KvTable> tables)
    : block_size_(block_size), tables_(std::move(tables)) {
  host_.num_tables = num_tables();
  for (const KvTable& table : tables_) copies_[table.num_parts];
}

const HostBatch& StepInput::set(const Plan& plan) {
  host_.clear_step();
  scored_rows_.clear();
  scored_tokens_.clear();
  for (auto& [num_parts, part_host] : copies_) {
    part_host.block_copies.clear();
    for (const PlannedCopy& copy : plan.block_copies) {
      for (int part = 0; part < num_parts; ++part) {
        part_host.block_copies.push_back({.source = copy.source * num_parts + part,
                                          .destination = copy.destination * num_parts + part,
                                          .num_tokens = copy.num_tokens});
      }
    }
    host_.block_copies.insert(host_.block_copies.end(), part_host.block_copies.begin(),
                              part_host.block_copies.end());
  }
  host_.num_decodes = plan.num_decodes;
  host_.query_start.push_back(0);
  host_.slot_mapping.resize(static_cast<std::size_t>(num_tables()) * plan.num_tokens);
  host_.first_slots.resize(num_tables() * plan.sequences.size());
  make_room(plan);
  for (int index = 0; index < static_cast<int>(plan.sequences.size()); ++index) {
    add_sequence(index, plan.sequences[index]);
    for (int table = 0; table < num_tables(); ++table) {
      extend_row(table, index, *plan.sequences[index].sequence);
      host_.first_slots[table * plan.sequences.size() + index] =
          first_slot(table, index, *plan.sequences[index].sequence);
    }
  }
  if (!host_.token_source.empty()) host_.token_source.resize(host_.token_ids.size(), -1);
  count();
  return host_;
}

// Makes the tables large enough for the plan's sequences at their longest. So they grow when a
// sequence arrives, and not while it runs.
void StepInput::make_room(const Plan& plan) {
  int max_blocks = host_.max_blocks;
  for (const PlannedSequence& planned : plan.sequences) {
    const int most = (planned.sequence->max_num_tokens() + block_size_ - 1) / block_size_;
    max_blocks = std::max(max_blocks, most);
  }
  std::size_t num_rows = num_rows_;
  if (num_rows < plan.sequences.size()) num_rows = std::max(2 * num_rows, plan.sequences.size());
  if (max_blocks == host_.max_blocks && num_rows == num_rows_) return;
  host_.max_blocks = max_blocks;
  num_rows_ = num_rows;
  host_.block_tables.assign(num_tables() * num_rows * max_blocks, 0);
  table_rows_.assign(num_tables() * num_rows, {});
  new_parts_.clear();
  device_table_ = {};
}

void StepInput::add_sequence(int index, const PlannedSequence& planned) {
  add_tokens(index, planned);
  if (planned.samples) host_.logits_rows.push_back(host_.num_tokens() - 1);
  host_.query_start.push_back(host_.num_tokens());
  host_.context_lens.push_back(planned.context_len());
}

void StepInput::add_tokens(int index, const PlannedSequence& planned) {
  const Sequence& sequence = *planned.sequence;
  const int first_token = host_.num_tokens();
  const std::size_t num_all_tokens = host_.slot_mapping.size() / tables_.size();
  for (int table = 0; table < num_tables(); ++table) {
    const auto [group, part, num_parts] = tables_[table];
    const std::span<const int> blocks = sequence.block_table(group);
    auto slot = host_.slot_mapping.begin() +
                static_cast<std::ptrdiff_t>(table * num_all_tokens + first_token);
    for (int position = planned.first_position; position < planned.context_len(); ++position) {
      const int block = blocks[position / block_size_] * num_parts + part;
      *slot++ = block * block_size_ + position % block_size_;
    }
  }
  if (planned.awaited_outcome >= 0) {
    host_.token_source.resize(host_.token_ids.size(), -1);
    host_.token_source.push_back(planned.awaited_outcome);
  }
  for (int position = planned.first_position; position < planned.context_len(); ++position) {
    host_.token_ids.push_back(position < sequence.num_tokens() ? sequence.token(position) : 0);
    host_.positions.push_back(position);
  }
  if (sequence.pooling() != Pooling::kNone) return;
  for (int i = 0; i < planned.num_read_rows; ++i) {
    const int row = planned.first_read_row + i;
    scored_rows_.push_back(first_token + row);
    scored_tokens_.push_back(
        {.sequence = index, .token_id = sequence.token(planned.first_position + row + 1)});
  }
}

void StepInput::extend_row(int table, int index, const Sequence& sequence) {
  const auto [group, part, num_parts] = tables_[table];
  TableRow& row = table_rows_[row_of(table, index)];
  const std::span<const int> blocks = sequence.block_table(group);
  const std::uint64_t epoch = sequence.blocks().epoch();
  if (row.arrival != sequence.arrival() || row.epoch != epoch || row.num_blocks == 0)
    row = {.arrival = sequence.arrival(), .epoch = epoch};
  const std::size_t first = row.num_blocks;
  if (first == blocks.size()) return;
  const std::size_t row_begin = row_of(table, index) * host_.max_blocks;
  for (std::size_t i = first; i < blocks.size(); ++i) {
    const int block = blocks[i] == kNoBlock ? kNoBlock : blocks[i] * num_parts + part;
    host_.block_tables[row_begin + i] = block;
    if (i > 0 && block == host_.block_tables[row_begin + i - 1] + 1) continue;
    row.run_begin = static_cast<int>(i);
    row.run_slot = (block - row.run_begin) * block_size_;
  }
  row.num_blocks = static_cast<int>(blocks.size());
  new_parts_.push_back({.begin = row_begin + first, .end = row_begin + blocks.size()});
  counters_.num_words += blocks.size() - first;
}

// Returns the slot that position 0 has if the held blocks are consecutive and continue down to it.
// -1: they are not consecutive, or that slot would be negative.
int StepInput::first_slot(int table, int index, const Sequence& sequence) const {
  const TableRow& row = table_rows_[row_of(table, index)];
  const bool is_run = row.run_begin <= sequence.blocks().first(tables_[table].group);
  return is_run ? std::max(row.run_slot, -1) : -1;
}

void StepInput::count() {
  for (const auto* array : {&host_.token_ids, &host_.token_source, &host_.positions,
                            &host_.query_start, &host_.context_lens, &host_.first_slots,
                            &host_.logits_rows, &host_.slot_mapping, &scored_rows_}) {
    counters_.num_words += array->size();
  }
  counters_.num_words += 3 * host_.block_copies.size() + 2 * scored_tokens_.size();
  const bool is_contiguous = std::all_of(host_.first_slots.begin(), host_.first_slots.end(),
                                         [](std::int32_t slot) { return slot >= 0; });
  ++(is_contiguous ? counters_.num_contiguous_steps : counters_.num_paged_steps);
}

StepBatch StepInput::upload(Exec& exec) {
  by_table_.clear();
  update_device_table(exec);
  StepBatch batch = pagoda::upload(exec, host_, device_table_);
  if (num_tables() == 1) return batch;
  split_tables(batch, by_table_);
  batch = by_table_.front();
  batch.by_table = by_table_.data();
  return batch;
}

StepBatch StepInput::copies_of(const StepBatch& batch, int num_parts) const {
  const auto own = copies_.find(num_parts);
  PAGODA_CHECK(own != copies_.end(), "[step_input] no layer has so many parts");
  std::size_t begin = 0;
  for (auto before = copies_.begin(); before != own; ++before)
    begin += before->second.block_copies.size();
  const std::size_t end = begin + own->second.block_copies.size();
  StepBatch copies;
  copies.host = &own->second;
  copies.block_copies =
      batch.block_copies.slice(0, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
  return copies;
}

void StepInput::update_device_table(Exec& exec) {
  if (device_table_.defined() && exec.writes_in_place()) {
    const std::span<const std::int32_t> tables = host_.block_tables;
    for (const TablePart& part : new_parts_) {
      exec.write<std::int32_t>(device_table_, static_cast<std::int64_t>(part.begin),
                               tables.subspan(part.begin, part.end - part.begin));
    }
  } else if (!device_table_.defined() || !new_parts_.empty()) {
    const auto num_rows = static_cast<std::int64_t>(table_rows_.size());  // of all tables
    device_table_ = exec.upload<std::int32_t>(host_.block_tables, {num_rows, host_.max_blocks});
  }
  new_parts_.clear();
}

}  // namespace pagoda
