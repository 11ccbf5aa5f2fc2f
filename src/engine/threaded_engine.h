// ThreadedEngine: the engine's one thread and the queues at both its ends. create_engine makes it.
//
// A step that fails, or throws, ends the requests in it with an error and frees what they held; the
// engine goes on. It can't go on where a step says that the device is gone (kUnavailable), or where
// something throws outside of a step's work: then every request ends with an error, submit() and
// stats() say so, and the thread ends.
//
// With lookahead a step is started before the one in front of it has been read, committed and
// delivered: the device has its next work while the host does its own.
//
//   device   | step N ........ | step N + 1 .... | step N + 2
//   host      launch N + 1 | read N, commit, deliver, launch N + 2 | read N + 1, ...
//
// A step that fails takes the one behind it with it.
#pragma once

#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/status.h"
#include "engine/engine.h"
#include "engine/model_runner.h"
#include "engine/scheduler.h"
#include "kv/block_pool.h"
#include "kv/prefix_cache.h"
#include "tensor/exec.h"

namespace pagoda {

// What the thread works with; made on it, because a lazy backend's streams belong to a thread.
struct EngineParts {
  std::unique_ptr<Exec> exec;
  std::unique_ptr<ModelRunner> runner;
  std::unique_ptr<BlockPool> pool;
  std::unique_ptr<PrefixCache> prefix_cache;  // null: none
  std::unique_ptr<Scheduler> scheduler;
  EngineLimits limits;
  std::uint64_t seed = 0;  // of the seeds drawn for requests without one
};

class ThreadedEngine final : public Engine {
 public:
  // Starts the thread, which runs make_parts and then serves; returns when make_parts has.
  static Result<std::unique_ptr<Engine>> start(std::function<Result<EngineParts>()> make_parts);
  ~ThreadedEngine() override;  // cancels what runs

  const EngineLimits& limits() const override { return parts_.limits; }
  Status check_room(const QueueDemand& demand) const override;
  Result<RequestId> submit(GenerationRequest request, EventSink sink) override;
  void cancel(RequestId id) override;
  void cancel_sample(RequestId id, int sample_index) override;
  EngineStats stats() const override;
  void drain(double deadline_s) override;

 private:
  struct Submission {
    Request request;
    EventSink sink;
    QueueDemand demand;
    bool hash_logits = false;
  };
  struct Cancellation {
    RequestId id = 0;
    std::optional<int> sample_index;  // absent: all
  };
  // A request between its admission and its last event.
  struct ActiveRequest {
    EventSink sink;
    int num_unfinished = 0;         // samples
    std::vector<bool> is_finished;  // [n]
    QueueDemand demand;             // of the queue, while it waits
    bool has_started = false;
    std::vector<std::optional<TokenLogprobs>>
        prompt_logprobs;                       // until sample 0's first event takes them
    std::vector<std::uint64_t> logits_hashes;  // [n], where asked for
    Status error;                              // why it is being given up
  };
  // A step that has been launched.
  struct LaunchedStep {
    const Plan* plan = nullptr;
    Clock::TimePoint start;
    Status status;  // of its launch
  };

  explicit ThreadedEngine() = default;
  Status check_room_locked(const QueueDemand& demand) const;
  void run();
  void serve();
  bool wait_for_work();  // false: the engine ends
  bool prefault();       // false: there is nothing to do
  void prefault_between_steps();
  void take_commands();
  void admit(Submission submission);
  void step();
  void wait_for_masks();
  LaunchedStep launch(const Plan& plan, Clock::TimePoint start);
  void draw();
  bool look_ahead();
  void end_step();
  void fail_steps(const Status& status);
  void note_starts(const Plan& plan);
  void leave_queue(const ActiveRequest& request);
  void count_step(const Plan& plan, bool succeeded, double seconds);
  void deliver(const Plan& plan, const StepOutput& output);
  void deliver_scores(const Plan& plan, const StepOutput& output);
  void deliver_token(const Sequence& sequence, const SampleOutcome& outcome,
                     const SampleOutput& output);
  void deliver_finished();
  static bool ended_by_token(const ActiveRequest& request, const Sequence& sequence);
  void send(ActiveRequest& request, const Sequence& sequence, OutputEvent event);
  void publish_stats();
  void cancel_everything();
  void die(const Status& reason);

  // The thread's own.
  EngineParts parts_;
  std::unordered_map<RequestId, ActiveRequest> active_;
  EngineStats counters_;
  std::optional<LaunchedStep> current_;  // whose results come next
  std::optional<LaunchedStep> next_;     // behind it
  Clock::TimePoint last_end_;            // of a step
  double prefault_debt_s_ = 0;           // until it is paid off, no memory is made ready
  int num_hashed_ = 0;                   // of active_, requests that want their logits' hash
  std::vector<Submission> taken_submissions_;
  std::vector<Cancellation> taken_cancellations_;

  // Between threads.
  mutable std::mutex mutex_;
  std::condition_variable work_;  // something for the engine's thread
  std::condition_variable idle_;  // nothing left to drain
  std::vector<Submission> submissions_;
  int num_submitted_ = 0;  // samples of submissions_: each will wait as a sequence
  QueueDemand queued_ = {.num_requests = 0};  // of requests that have not started
  std::vector<Cancellation> cancellations_;
  EngineStats stats_;
  RequestId next_id_ = 1;
  bool draining_ = false;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace pagoda
