// ThreadedEngine: runs an EngineCore on a thread of its own, and has the queues between that thread
// and the callers. create_engine() makes it.
//
// If a step reports that the device is lost, or code outside a step throws, the engine has failed.
// Then every request ends with an error, submit() and stats() report the failure, and the thread
// ends.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/status.h"
#include "engine/engine.h"
#include "engine/engine_core.h"

namespace pagoda {

class ThreadedEngine final : public Engine {
 public:
  // Starts the thread, which runs make_parts and then serves. Returns when make_parts has returned.
  static Result<std::unique_ptr<Engine>> start(std::function<Result<EngineParts>()> make_parts);
  ~ThreadedEngine() override;  // cancels all requests

  const EngineLimits& limits() const override { return core_->limits(); }
  Status check_room(const QueueDemand& demand) const override;
  std::uint64_t draw_seed() override { return core_->draw_seed(); }
  Result<RequestId> submit(GenerationRequest request, EventSink sink) override;
  void cancel(RequestId id) override;
  void cancel_sample(RequestId id, int sample_index) override;
  EngineStats stats() const override;
  void reset_prefix_cache(const std::string& cache_owner) override;
  void drain(double deadline_s) override;

 private:
  struct Submission {
    RequestId id = 0;
    GenerationRequest request;
    EventSink sink;
  };
  struct Cancellation {
    RequestId id = 0;
    std::optional<int> sample_index;  // absent: all
  };

  explicit ThreadedEngine() = default;
  Status check_room_locked(const QueueDemand& demand) const;
  void add_cancellation(const Cancellation& cancellation);
  void run();
  void serve();
  bool has_work() const;
  bool wait_for_work();
  void wait_for_others();
  void take_commands();
  void leave_queue(const QueueDemand& demand);
  Status make_core(const std::function<Result<EngineParts>()>& make_parts);
  void publish_stats();
  void die(const Status& reason);

  // Used only by the engine's thread, except the thread-safe members of EngineCore. Set before
  // start() returns.
  std::unique_ptr<EngineCore> core_;
  std::vector<Submission> taken_submissions_;
  std::vector<Cancellation> taken_cancellations_;
  std::set<std::string> taken_resets_;

  // Shared between threads, under mutex_.
  mutable std::mutex mutex_;
  std::condition_variable work_;  // there is work for the engine's thread
  std::condition_variable idle_;  // no request is left
  std::vector<Submission> submissions_;
  int num_submitted_ = 0;  // samples in submissions_: each becomes a waiting sequence
  QueueDemand queued_ = {.num_requests = 0};  // room of requests that have not started
  std::vector<Cancellation> cancellations_;
  // Owners whose cached blocks are dropped before the submissions are taken.
  std::set<std::string> resets_;
  EngineStats stats_;
  RequestId next_id_ = 1;
  bool draining_ = false;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace pagoda
