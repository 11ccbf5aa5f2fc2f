// EngineParts: the parts that an engine is made of (engine/assemble.h).
#pragma once

#include <cstdint>
#include <memory>

#include "engine/engine.h"
#include "engine/scheduler.h"
#include "engine/step_runner.h"
#include "kv/block_pool.h"
#include "kv/block_tier.h"
#include "kv/prefix_cache.h"
#include "tensor/exec.h"

namespace pagoda {

// Built on the thread that runs the steps, because a lazy backend's streams belong to that thread.
struct EngineParts {
  std::unique_ptr<Exec> exec;
  std::unique_ptr<StepRunner> runner;
  std::unique_ptr<BlockPool> pool;
  std::unique_ptr<BlockTier> tier;            // below the prefix cache; null: none
  std::shared_ptr<CacheEvents> cache_events;  // of the prefix cache; null: not recorded
  std::unique_ptr<PrefixCache> prefix_cache;  // null: none
  std::unique_ptr<Scheduler> scheduler;
  EngineLimits limits;
  std::uint64_t seed = 0;  // from which seeds for requests without one are drawn
};

}  // namespace pagoda
