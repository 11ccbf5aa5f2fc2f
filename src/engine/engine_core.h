// EngineCore: the engine's loop without its thread. One call of step() plans, computes, commits and
// delivers; nano-vllm's three lines with what a server needs around them.
//
// With lookahead a step is started before the one in front of it has been read, committed and
// delivered: the device has its next work while the host does its own.
//
//   device   | step N ........ | step N + 1 .... | step N + 2
//   host      launch N + 1 | read N, commit, deliver, launch N + 2 | read N + 1, ...
//
// A step that fails, or throws, ends the requests in it with an error and frees what they held, and
// the one behind it does as well; the next ones work. A step that fails with kUnavailable says that
// the device is gone, and none after it can work.
//
// Belongs to one thread, but for check() and limits().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/clock.h"
#include "core/status.h"
#include "engine/active_requests.h"
#include "engine/engine.h"
#include "engine/scheduler.h"
#include "engine/step_runner.h"
#include "kv/block_pool.h"
#include "kv/prefix_cache.h"
#include "tensor/exec.h"

namespace pagoda {

// The parts that an engine is made of (engine/assemble.h), built on the thread that steps: a lazy
// backend's streams belong to it.
struct EngineParts {
  std::unique_ptr<Exec> exec;
  std::unique_ptr<StepRunner> runner;
  std::unique_ptr<BlockPool> pool;
  std::unique_ptr<PrefixCache> prefix_cache;  // null: none
  std::unique_ptr<Scheduler> scheduler;
  EngineLimits limits;
  std::uint64_t seed = 0;  // of the seeds drawn for requests without one
};

class EngineCore {
 public:
  // Makes a core over these parts. leaves_queue: see ActiveRequests. clock: of the durations that
  // the scheduler is told and of events; it outlives the core.
  explicit EngineCore(
      EngineParts parts, ActiveRequests::LeavesQueue leaves_queue = [](const QueueDemand&) {},
      const Clock& clock = Clock::system());

  // Checks whether a request can be served. kInvalidArgument: an empty or over-long prompt, ids out
  // of range, a sampling value out of range, more blocks than the KV cache has. Thread-safe.
  Status check(const GenerationRequest& request) const;
  const EngineLimits& limits() const { return parts_.limits; }

  // Queues a request. REQUIRES: check(request), and an id that no other request has had.
  void add(RequestId id, GenerationRequest request, EventSink sink);
  // Cancels as Engine does. The last events come with this call or, of sequences that are in a
  // step, with its end.
  void cancel(RequestId id);
  void cancel_sample(RequestId id, int sample_index);

  // Ends one step, and starts the one behind it where there is lookahead. False: nothing can be
  // computed now, because there is nothing (idle()) or because all that runs awaits its mask.
  // kUnavailable: the device is gone; fail_all() is all that is left to do.
  Result<bool> step();
  bool idle() const { return parts_.scheduler->idle(); }

  // Makes a small part of the memory ready that later steps need; false: nothing was left to do.
  bool prefault();
  // Does the same, unless that has taken its share of the steps' time already.
  void prefault_between_steps();

  // Ends every request with kCancelled, and the steps in flight. Errors: as step().
  Status cancel_all();
  // Ends every request with this error. The core takes no more of them.
  void fail_all(const Status& reason) { requests_.fail_all(reason); }
  // Gives back what belongs to the thread that steps. check() and limits() still answer.
  void close();

  // Returns the statistics without what only an Engine knows: its queue, and whether it is healthy.
  EngineStats stats() const;
  const Scheduler& scheduler() const { return *parts_.scheduler; }
  const BlockPool& pool() const { return *parts_.pool; }

 private:
  // A step that has been launched.
  struct LaunchedStep {
    const Plan* plan = nullptr;
    Clock::TimePoint start;
    Status status;  // of its launch
  };

  LaunchedStep launch(const Plan& plan, Clock::TimePoint start);
  void draw();
  bool look_ahead();
  Status end_step();
  void fail_steps(const Status& status);
  void deliver_ends();
  void count_step(const Plan& plan, bool succeeded, double seconds);

  EngineParts parts_;
  const Clock& clock_;
  ActiveRequests requests_;
  EngineStats counters_;
  std::optional<LaunchedStep> current_;  // whose results come next
  std::optional<LaunchedStep> next_;     // behind it
  Clock::TimePoint last_end_;            // of a step
  double prefault_debt_s_ = 0;           // until it is paid off, no memory is made ready
};

}  // namespace pagoda
