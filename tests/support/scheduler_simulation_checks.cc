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

// Checks that the blocks which a fetching sequence has so far are cached and hold its own prefix.
void SchedulerSimulation::check_fetched(const Sequence& sequence) const {
  const int block_size = options_.scheduler.block_size;
  const int num_tokens = static_cast<int>(sequence.block_table().size()) * block_size;
  require(num_tokens < sequence.num_tokens());
  const std::vector<std::uint64_t> hashes = hashes_of(sequence, num_tokens);
  for (int group = 0; group < num_groups(); ++group) {
    const auto blocks = sequence.block_table(group);
    for (int p = 0; p < num_tokens; ++p) {
      const int block = blocks[p / block_size];
      if (block == kNoBlock) continue;
      require(p >= first_read(group, num_tokens) / block_size * block_size);
      require(cache_->is_cached(block) && cache_->is_full(block));
      require(slots_[static_cast<std::size_t>(block) * block_size + p % block_size] ==
              entry_of(hashes[p], group));
    }
  }
}

// Returns the first position that a query at `position` reads.
int SchedulerSimulation::first_read(int group, int position) const {
  const int window = options_.scheduler.group_windows[group];
  return window == 0 ? 0 : std::max(0, position + 1 - window);
}

// Checks that a running sequence has all blocks that its next query reads, and no earlier blocks.
void SchedulerSimulation::check_tables(const Sequence& sequence) const {
  for (int group = 0; group < num_groups(); ++group) {
    const auto blocks = sequence.block_table(group);
    const int first = first_read(group, sequence.num_computed()) / options_.scheduler.block_size;
    for (int i = 0; i < static_cast<int>(blocks.size()); ++i)
      require((blocks[i] == kNoBlock) == (i < first));
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
    const PlannedSequence& planned = step.plan->sequences[i];
    for (int group = 0; group < num_groups(); ++group) {
      for (int p = first_read(group, planned.first_position); p < planned.context_len(); ++p)
        slots.insert(slot(step.tables[i][group], p));
    }
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
    for (const std::vector<int>& table : step.tables[i]) {
      for (int p = planned.first_position; p < planned.context_len(); ++p)
        slots.insert(slot(table, p));
    }
  }
  return slots;
}

// Checks that `after` writes no slot that `before` reads: some devices start a kernel before an
// earlier one has read its inputs.
void SchedulerSimulation::check_order(const Launched& before, const Launched& after) const {
  const std::set<int> read = slots_read(before);
  for (const int written : slots_written(after)) require(read.count(written) == 0u);
}

// Returns how often steps in flight hold blocks: those that they copy, and those that cached blocks
// have replaced since the launch. given_back: the blocks that have left a window since then, even
// if they had been replaced before.
std::map<int, int> SchedulerSimulation::holds_of_steps(std::set<int>& given_back) const {
  std::map<int, int> holds;
  for (const Launched& step : in_flight_) {
    for (const PlannedCopy& copy : step.plan->block_copies) ++holds[copy.source];
    for (std::size_t i = 0; i < step.tables.size(); ++i) {
      for (int group = 0; group < num_groups(); ++group) {
        const auto table = step.plan->sequences[i].sequence->block_table(group);
        const std::vector<int>& launched = step.tables[i][group];
        require(table.size() == launched.size());
        for (std::size_t k = 0; k < table.size(); ++k) {
          if (table[k] == launched[k]) continue;
          if (table[k] == kNoBlock) {
            given_back.insert(launched[k]);
          } else {
            ++holds[launched[k]];
          }
        }
      }
    }
  }
  return holds;
}

void SchedulerSimulation::check_blocks() {
  std::map<int, int> num_owners;
  std::map<int, std::set<RequestId>> requests_of;
  std::map<std::uint64_t, int> blocks_of;  // full blocks, by their last entries
  const int block_size = options_.scheduler.block_size;
  for (const auto& [rank, sequence] : running_) {
    if (!sequence->block_table().empty()) check_tables(*sequence);
    for (int group = 0; group < sequence->blocks().num_groups(); ++group) {
      const auto blocks = sequence->block_table(group);
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (blocks[i] == kNoBlock) continue;
        ++num_owners[blocks[i]];
        requests_of[blocks[i]].insert(sequence->request_id());
        if (!cache_ || (static_cast<int>(i) + 1) * block_size > sequence->num_computed()) continue;
        require(cache_->is_cached(blocks[i]));
        const auto end = slots_[static_cast<std::size_t>(blocks[i] + 1) * block_size - 1];
        require(blocks_of.try_emplace(end, blocks[i]).first->second == blocks[i]);
      }
    }
  }
  for (const auto& sequence : scheduler_.fetching()) {
    check_fetched(*sequence);
    for (int group = 0; group < num_groups(); ++group) {
      for (const int block : sequence->block_table(group)) num_owners[block] += block != kNoBlock;
    }
  }
  std::set<int> given_back;
  std::map<int, int> step_holds = holds_of_steps(given_back);
  int num_free = 0, num_evictable = 0;
  for (int block = 0; block < pool_.num_blocks(); ++block) {
    const bool is_cached = cache_ && cache_->is_cached(block);
    const auto owners = num_owners.find(block);
    const int num_own = owners == num_owners.end() ? 0 : owners->second;
    const int num_expected = num_own + step_holds[block] + (is_cached ? 1 : 0);
    const bool may_be_replaced = given_back.count(block) > 0 && pool_.num_holders(block) == 1;
    require(pool_.num_holders(block) == num_expected || (may_be_replaced && num_expected == 0));
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
