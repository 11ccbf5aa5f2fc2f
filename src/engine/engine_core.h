// EngineCore: the engine's loop without its thread. One call of step() plans, computes, commits and
// delivers; nano-vllm's three lines with what a server needs around them.
//
// With lookahead a step is started before the one in front of it has been read, committed and
// delivered: the device has its next work while the host does its own.
//
//   device   | step N ........ | step N + 1 .... | step N + 2
//   host      launch N + 1 | read N, commit, deliver, launch N + 2 | read N + 1, ...
//
// A step that fails, or throws, ends the requests in it with an error and frees what they held. The
// step behind it does as well; the next ones work. A step that fails with kUnavailable says that
// the device is gone, and none after it can work.
//
// Belongs to one thread, but for check(), limits() and draw_seed().
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "core/status.h"
#include "engine/active_requests.h"
#include "engine/engine.h"
#include "engine/engine_parts.h"
#include "engine/request_admission.h"
#include "engine/step_counters.h"

namespace pagoda {

class EngineCore {
 public:
  // Makes a core over these parts. leaves_queue: see ActiveRequests. clock: measures the durations
  // that the scheduler is told, and the times of events; it outlives the core.
  explicit EngineCore(
      EngineParts parts, ActiveRequests::LeavesQueue leaves_queue = [](const QueueDemand&) {},
      const Clock& clock = Clock::system());

  // Checks a request as check_request() does. Thread-safe.
  Status check(const GenerationRequest& request) const {
    return check_request(request, limits(), *parts_.scheduler);
  }
  const EngineLimits& limits() const { return parts_.limits; }
  // Draws a seed as Engine does. Thread-safe.
  std::uint64_t draw_seed() { return drawn_seed(num_drawn_seeds_++, parts_.seed); }

  // Queues a request. REQUIRES: check(request), and an id that no other request has had.
  void add(RequestId id, GenerationRequest request, EventSink sink);
  // Cancels as Engine does. The last events come with this call or, of sequences that are in a
  // step, with its end.
  void cancel(RequestId id);
  void cancel_sample(RequestId id, int sample_index);

  // Ends one step, and starts the one behind it where there is lookahead. False: nothing can be
  // computed now, because there is nothing (idle()) or because all that there is awaits masks or
  // blocks. kUnavailable: the device is gone; fail_all() is all that is left to do.
  Result<bool> step();
  bool idle() const { return parts_.scheduler->idle(); }

  // Pages in a small part of the memory that later steps need; false: nothing was left to do.
  bool prefault();
  // Does the same, unless that has taken its share of the steps' time already.
  void prefault_between_steps();

  // Ends every request with kCancelled, and the steps in flight. Errors: as step().
  Status cancel_all();
  // Ends every request with this error. The core takes no more of them.
  void fail_all(const Status& reason) { requests_.fail_all(reason); }
  // Resets the prefix cache as Engine does.
  void reset_prefix_cache(const std::string& cache_owner);
  // Gives the tier below the prefix cache all that this holds, and waits for it. REQUIRES: idle().
  void store_cache();
  // Gives back what belongs to the thread that steps. check() and limits() still answer.
  void close();

  // Returns the statistics without what only an Engine knows: its queue, and whether it is healthy.
  EngineStats stats() const { return counters_.snapshot(parts_); }
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

  EngineParts parts_;
  std::atomic<std::uint64_t> num_drawn_seeds_ = 0;
  const Clock& clock_;
  ActiveRequests requests_;
  StepCounters counters_;
  std::optional<LaunchedStep> current_;  // whose results come next
  std::optional<LaunchedStep> next_;     // behind it
  Clock::TimePoint last_end_;            // of a step
  double prefault_debt_s_ = 0;           // until it is paid off, no memory is paged in
};

}  // namespace pagoda
