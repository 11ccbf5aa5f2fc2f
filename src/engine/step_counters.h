// StepCounters: what the steps of an engine have computed and how long they took.
//
// Belongs to the engine thread.
#pragma once

#include "engine/engine_parts.h"
#include "engine/engine_stats.h"
#include "engine/plan.h"

namespace pagoda {

class StepCounters {
 public:
  // Counts a step that has been committed or has failed. scheduler: the scheduler's counters after
  // that.
  void count_step(const Plan& plan, bool succeeded, double seconds,
                  const SchedulerCounters& scheduler);
  void count_lookahead() { ++counters_.num_lookahead_steps; }
  void count_finished_requests(int count) { counters_.num_finished_requests += count; }

  // Returns these counters together with the parts' counters and facts.
  EngineStats snapshot(const EngineParts& parts) const;

 private:
  EngineStats counters_;
};

}  // namespace pagoda
