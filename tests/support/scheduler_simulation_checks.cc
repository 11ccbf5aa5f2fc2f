// The checks of blocks and slots while the simulation runs, and the tier below them.
#include "tests/support/scheduler_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace pagoda::testing {

FakeBlockTier SchedulerSimulation::make_tier() {
  FakeBlockTier tier([this](int block_id) {
    const auto block_size = static_cast<std::size_t>(options_.scheduler.block_size);
    return std::span(slots_).subspan(block_id * block_size, block_size);
  });
  tier.loads_per_step = options_.tier->loads_per_step;
  tier.takes = [this] { return !happens(options_.tier->dropped); };
  tier.arrives = [this] {
    if (num_awaited_ < kMostAwaited && happens(options_.tier->awaited)) {
      ++num_awaited_;
      return BlockTier::Arrival::kAwaited;
    }
    num_awaited_ = 0;
    return happens(options_.tier->failed) ? BlockTier::Arrival::kNever : BlockTier::Arrival::kHere;
  };
  return tier;
}

// The blocks of one that fetches are cached, with its own beginning in them.
void SchedulerSimulation::check_fetched(const Sequence& sequence) const {
  const int block_size = options_.scheduler.block_size;
  const auto blocks = sequence.block_table();
  require(static_cast<int>(blocks.size()) * block_size < sequence.num_tokens());
  std::uint64_t hash = start_hash(sequence);
  for (int p = 0; p < static_cast<int>(blocks.size()) * block_size; ++p) {
    const int block = blocks[p / block_size];
    require(cache_->is_cached(block) && cache_->is_full(block));
    hash = hash_with(hash, sequence.token(p));
    require(slots_[static_cast<std::size_t>(block) * block_size + p % block_size] == hash);
  }
}

int SchedulerSimulation::slot(const std::vector<int>& table, int position) const {
  const int block_size = options_.scheduler.block_size;
  return table[position / block_size] * block_size + position % block_size;
}

std::set<int> SchedulerSimulation::slots_read(const Launched& step) const {
  std::set<int> slots;
  for (const PlannedCopy& copy : step.plan->block_copies) {
    for (int i = 0; i < copy.num_tokens; ++i)
      slots.insert(copy.source * options_.scheduler.block_size + i);
  }
  for (std::size_t i = 0; i < step.tables.size(); ++i) {
    for (int p = 0; p < step.plan->sequences[i].context_len(); ++p)
      slots.insert(slot(step.tables[i], p));
  }
  return slots;
}

std::set<int> SchedulerSimulation::slots_written(const Launched& step) const {
  std::set<int> slots;
  for (const PlannedCopy& copy : step.plan->block_copies) {
    for (int i = 0; i < copy.num_tokens; ++i)
      slots.insert(copy.destination * options_.scheduler.block_size + i);
  }
  for (std::size_t i = 0; i < step.tables.size(); ++i) {
    const PlannedSequence& planned = step.plan->sequences[i];
    for (int p = planned.first_position; p < planned.context_len(); ++p)
      slots.insert(slot(step.tables[i], p));
  }
  return slots;
}

// Devices that start a kernel before an earlier one has read what it was meant to read do no harm.
void SchedulerSimulation::check_order(const Launched& before, const Launched& after) const {
  const std::set<int> read = slots_read(before);
  for (const int written : slots_written(after)) require(read.count(written) == 0u);
}

// Blocks that steps in flight hold: what they copy, and what cached blocks have replaced since.
std::map<int, int> SchedulerSimulation::holds_of_steps() const {
  std::map<int, int> holds;
  for (const Launched& step : in_flight_) {
    for (const PlannedCopy& copy : step.plan->block_copies) ++holds[copy.source];
    for (std::size_t i = 0; i < step.tables.size(); ++i) {
      const auto table = step.plan->sequences[i].sequence->block_table();
      require(table.size() == step.tables[i].size());
      for (std::size_t k = 0; k < table.size(); ++k) {
        if (table[k] != step.tables[i][k]) ++holds[step.tables[i][k]];
      }
    }
  }
  return holds;
}

void SchedulerSimulation::check_blocks() {
  std::map<int, int> num_owners;
  std::map<int, std::set<RequestId>> requests_of;
  std::map<std::uint64_t, int> blocks_of;  // full ones, by what stands at their ends
  const int block_size = options_.scheduler.block_size;
  for (const auto& [rank, sequence] : running_) {
    const auto blocks = sequence->block_table();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      ++num_owners[blocks[i]];
      requests_of[blocks[i]].insert(sequence->request_id());
      if (!cache_ || (static_cast<int>(i) + 1) * block_size > sequence->num_computed()) continue;
      require(cache_->is_cached(blocks[i]));
      const auto end = slots_[static_cast<std::size_t>(blocks[i] + 1) * block_size - 1];
      require(blocks_of.try_emplace(end, blocks[i]).first->second == blocks[i]);
    }
  }
  for (const auto& sequence : scheduler_.fetching()) {
    check_fetched(*sequence);
    for (const int block : sequence->block_table()) ++num_owners[block];
  }
  std::map<int, int> step_holds = holds_of_steps();
  int num_free = 0, num_evictable = 0;
  for (int block = 0; block < pool_.num_blocks(); ++block) {
    const bool is_cached = cache_ && cache_->is_cached(block);
    const auto owners = num_owners.find(block);
    const int num_own = owners == num_owners.end() ? 0 : owners->second;
    require(pool_.num_holders(block) == num_own + step_holds[block] + (is_cached ? 1 : 0));
    require(cache_ || num_own == 0 || requests_of[block].size() == 1);
    num_evictable += is_cached && num_own + step_holds[block] == 0;
    if (pool_.num_holders(block) > 0) continue;
    ++num_free;
    std::fill_n(slots_.begin() + static_cast<std::ptrdiff_t>(block) * block_size, block_size,
                kUnowned);
  }
  require(pool_.num_free() == num_free);
  require(scheduler_.num_free_blocks() == num_free + num_evictable);
}

}  // namespace pagoda::testing
