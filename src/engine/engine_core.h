// EngineCore: the engine's loop without its thread. One call of step() plans, computes, commits and
// delivers one step.
//
// With lookahead step N + 1 is launched before the results of step N are read, committed and
// delivered. So the device computes while the host works.
//
//   device   | step N ........ | step N + 1 .... | step N + 2
//   host      launch N + 1 | read N, commit, deliver, launch N + 2 | read N + 1, ...
//
// A step that fails or throws ends its requests with an error and frees their blocks. So it does
// with the requests of a step that is already launched after it; later steps work. If a step fails
// with kUnavailable, the device is lost and no later step can work.
//
// Belongs to one thread, except check(), limits() and draw_seed().
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
  // that the scheduler gets, and the times of events; it outlives the core.
  explicit EngineCore(
      EngineParts parts, ActiveRequests::LeavesQueue leaves_queue = [](const QueueDemand&) {},
      const Clock& clock = Clock::system());

  // Checks a request as check_request() does. Thread-safe.
  Status check(const GenerationRequest& request) const {
    return check_request(request, limits(), *parts_.scheduler);
  }
  const EngineLimits& limits() const { return parts_.limits; }
  // Draws a seed: see Engine. Thread-safe.
  std::uint64_t draw_seed() { return drawn_seed(num_drawn_seeds_++, parts_.seed); }

  // Queues a request. REQUIRES: check(request), and an id that no other request has had.
  void add(RequestId id, GenerationRequest request, EventSink sink);
  // Cancels as Engine does. The last events are sent by this call; those of sequences in a step in
  // flight, when that step ends.
  void cancel(RequestId id);
  void cancel_sample(RequestId id, int sample_index);

  // Ends one step and, with lookahead, launches the next one. False: nothing can be computed now,
  // because there are no requests (idle()) or all of them wait for masks or blocks. kUnavailable:
  // the device is lost, and the caller has to call fail_all().
  Result<bool> step();
  bool idle() const { return parts_.scheduler->idle(); }

  // Pages in a small part of the memory that later steps need; false: nothing was left to do.
  bool prefault();
  // Calls prefault(), unless it has used up its share of the steps' time.
  void prefault_between_steps();

  // Ends every request with kCancelled, and completes the steps in flight. Errors: as step().
  Status cancel_all();
  // Ends every request with this error. The caller adds no further requests.
  void fail_all(const Status& reason) { requests_.fail_all(reason); }
  // Resets the prefix cache as Engine does.
  void reset_prefix_cache(const std::string& cache_owner);
  // Stores all blocks of the prefix cache in the tier below it, waiting for room in the tier's
  // queue. REQUIRES: idle().
  void store_cache();
  // Destroys what has to be destroyed on the thread of the steps. check() and limits() still work.
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
  std::optional<LaunchedStep> current_;  // the oldest one, whose results are read next
  std::optional<LaunchedStep> next_;     // launched after current_
  Clock::TimePoint last_end_;            // when the last step ended
  // Time spent on paging in, less its share of the steps' time. Above 0: nothing is paged in.
  double prefault_debt_s_ = 0;
};

}  // namespace pagoda
