#include "engine/step_counters.h"

#include <algorithm>
#include <cstdint>
#include <functional>

namespace pagoda {

void StepCounters::count_step(const Plan& plan, bool succeeded, double seconds,
                              const SchedulerCounters& scheduler) {
  ++counters_.num_steps;
  const std::uint64_t num_prompt_before = counters_.num_prompt_tokens;
  for (const PlannedSequence& planned : plan.sequences) {
    const int prompt_left = planned.sequence->num_prompt_tokens() - planned.first_position;
    counters_.num_prompt_tokens +=
        static_cast<std::uint64_t>(std::clamp(prompt_left, 0, planned.num_new_tokens));
  }
  const std::uint64_t num_without_token =
      scheduler.num_dropped_positions - counters_.num_dropped_positions +
      scheduler.num_deferred_draws - counters_.num_deferred_draws;
  counters_.num_dropped_positions = scheduler.num_dropped_positions;
  counters_.num_deferred_draws = scheduler.num_deferred_draws;
  const std::uint64_t generated = succeeded ? plan.num_samples - num_without_token : 0;
  counters_.num_generated_tokens += generated;
  const std::uint64_t num_tokens = counters_.num_prompt_tokens - num_prompt_before + generated;
  const auto* const bound =
      std::ranges::lower_bound(kStepTokenBounds, num_tokens, std::less<>(),
                               [](int tokens) { return static_cast<std::uint64_t>(tokens); });
  ++counters_.num_steps_by_tokens[bound - kStepTokenBounds.begin()];
  (plan.is_decode() ? counters_.decode_s : counters_.prefill_s) += seconds;
  if (!plan.is_decode()) return;
  ++counters_.num_decode_steps;
  counters_.num_decode_tokens += generated;
}

EngineStats StepCounters::snapshot(const EngineParts& parts) const {
  EngineStats stats = counters_;
  stats.num_running = parts.scheduler->num_running();
  stats.num_waiting = parts.scheduler->num_waiting();
  stats.num_blocks = parts.pool->num_blocks();
  stats.num_free_blocks = parts.scheduler->num_free_blocks();
  const SchedulerCounters& scheduler = parts.scheduler->counters();
  stats.num_preemptions = scheduler.num_preemptions;
  stats.num_priority_turns = scheduler.num_priority_turns;
  stats.num_prefix_queries = scheduler.num_prefix_queries;
  stats.num_prefix_hits = scheduler.num_told_prefix_hits;
  stats.num_block_copies = scheduler.num_block_copies;
  if (parts.prefix_cache) {
    stats.num_prefix_evictions = parts.prefix_cache->counters().num_evicted_blocks;
    stats.num_hashed_blocks = parts.prefix_cache->counters().num_hashed_blocks;
  }
  if (parts.tier) stats.tier = parts.tier->counters();
  stats.runner = parts.runner->stats();
  return stats;
}

}  // namespace pagoda
