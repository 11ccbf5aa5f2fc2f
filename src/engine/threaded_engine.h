// ThreadedEngine: the engine's one thread, which drives an EngineCore, and the queues at both its
// ends. create_engine makes it.
//
// Where a step says that the device is gone, or something throws outside of a step's work, the
// engine is dead: every request ends with an error, submit() and stats() say so, and the thread
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
  // Starts the thread, which runs make_parts and then serves; returns when make_parts has.
  static Result<std::unique_ptr<Engine>> start(std::function<Result<EngineParts>()> make_parts);
  ~ThreadedEngine() override;  // cancels what runs

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

  // The thread's own, but for what EngineCore lets any thread do. Set before start() returns.
  std::unique_ptr<EngineCore> core_;
  std::vector<Submission> taken_submissions_;
  std::vector<Cancellation> taken_cancellations_;
  std::set<std::string> taken_resets_;

  // Between threads.
  mutable std::mutex mutex_;
  std::condition_variable work_;  // something for the engine's thread
  std::condition_variable idle_;  // nothing left to drain
  std::vector<Submission> submissions_;
  int num_submitted_ = 0;  // samples of submissions_: each will wait as a sequence
  QueueDemand queued_ = {.num_requests = 0};  // of requests that have not started
  std::vector<Cancellation> cancellations_;
  std::set<std::string> resets_;  // owners whose cached blocks go before the submissions are taken
  EngineStats stats_;
  RequestId next_id_ = 1;
  bool draining_ = false;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace pagoda
