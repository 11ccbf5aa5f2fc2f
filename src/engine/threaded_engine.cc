#include "engine/threaded_engine.h"

#include <chrono>
#include <exception>
#include <future>
#include <utility>

#include "core/log.h"
#include "core/start_thread.h"

namespace pagoda {
namespace {

// Time between two checks whether masks and blocks are ready.
constexpr std::chrono::milliseconds kBetweenLooks(1);

}  // namespace

Result<std::unique_ptr<Engine>> ThreadedEngine::start(
    std::function<Result<EngineParts>()> make_parts) {
  std::unique_ptr<ThreadedEngine> engine(new ThreadedEngine());
  std::promise<Status> made;
  std::future<Status> ready = made.get_future();
  engine->thread_ = start_thread([&made, self = engine.get(), make_parts = std::move(make_parts)] {
    try {
      const Status status = self->make_core(make_parts);
      made.set_value(status);
      if (!status.ok()) return;
    } catch (...) {
      made.set_exception(std::current_exception());
      return;
    }
    self->run();
  });
  PAGODA_RETURN_IF_ERROR(ready.get());
  return std::unique_ptr<Engine>(std::move(engine));
}

Status ThreadedEngine::make_core(const std::function<Result<EngineParts>()>& make_parts) {
  PAGODA_ASSIGN_OR_RETURN(EngineParts parts, make_parts());
  core_ = std::make_unique<EngineCore>(std::move(parts),
                                       [this](const QueueDemand& demand) { leave_queue(demand); });
  publish_stats();
  return ok_status();
}

ThreadedEngine::~ThreadedEngine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    work_.notify_one();
  }
  if (thread_.joinable()) thread_.join();  // it may never have started
}

Status ThreadedEngine::check_room(const QueueDemand& demand) const {
  const std::lock_guard lock(mutex_);
  return check_room_locked(demand);
}

Status ThreadedEngine::check_room_locked(const QueueDemand& demand) const {
  if (!stats_.healthy) return unavailable("[engine] it has failed and takes no new requests");
  if (draining_ || stopping_)
    return unavailable("[engine] it is shutting down and takes no new requests");
  const int max_queue = limits().max_queue;
  if (demand.num_requests > max_queue) {
    return invalid_argument(
        "[engine] expected at most {} prompts, as many as the queue holds, got {}", max_queue,
        demand.num_requests);
  }
  if (demand.num_bytes > kMaxQueueBytes) {
    return invalid_argument(
        "[engine] expected prompts and samples of at most {} MB, as much as the queue holds, got "
        "{}",
        kMaxQueueBytes >> 20, demand.num_bytes >> 20);
  }
  QueueDemand queued = queued_;
  queued += demand;
  if (queued.num_requests > max_queue)
    return resource_exhausted("[engine] the queue of {} requests is full", max_queue);
  if (queued.num_bytes > kMaxQueueBytes)
    return resource_exhausted("[engine] the queue's {} MB are full", kMaxQueueBytes >> 20);
  return ok_status();
}

Result<RequestId> ThreadedEngine::submit(GenerationRequest request, EventSink sink) {
  PAGODA_RETURN_IF_ERROR(core_->check(request));
  const QueueDemand demand = QueueDemand::of(request);
  const std::lock_guard lock(mutex_);
  PAGODA_RETURN_IF_ERROR(check_room_locked(demand));
  const RequestId id = next_id_++;
  num_submitted_ += request.sampling.n;
  queued_ += demand;
  submissions_.push_back({.id = id, .request = std::move(request), .sink = std::move(sink)});
  work_.notify_one();
  return id;
}

void ThreadedEngine::cancel(RequestId id) {
  add_cancellation({.id = id});
}

void ThreadedEngine::cancel_sample(RequestId id, int sample_index) {
  add_cancellation({.id = id, .sample_index = sample_index});
}

void ThreadedEngine::add_cancellation(const Cancellation& cancellation) {
  const std::lock_guard lock(mutex_);
  if (!stats_.healthy) return;
  cancellations_.push_back(cancellation);
  work_.notify_one();
}

EngineStats ThreadedEngine::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats stats = stats_;
  stats.num_waiting += num_submitted_;
  stats.num_waiting_requests = queued_.num_requests;
  return stats;
}

void ThreadedEngine::reset_prefix_cache(const std::string& cache_owner) {
  const std::lock_guard lock(mutex_);
  resets_.insert(cache_owner);
  work_.notify_one();
}

void ThreadedEngine::drain(double deadline_s) {
  std::unique_lock lock(mutex_);
  draining_ = true;
  const auto done = [this] {
    return submissions_.empty() && stats_.num_running + stats_.num_waiting == 0;
  };
  if (idle_.wait_for(lock, std::chrono::duration<double>(deadline_s), done)) return;
  stopping_ = true;
  work_.notify_one();
  idle_.wait(lock, done);
}

void ThreadedEngine::run() {
  try {
    serve();
  } catch (const std::exception& error) {
    // The scheduler's state may be inconsistent, so no further step is run.
    die(unavailable("[engine] it has failed: {}", error.what()));
  }
  core_->close();
}

void ThreadedEngine::serve() {
  while (wait_for_work()) {
    take_commands();
    const Result<bool> stepped = core_->step();
    if (!stepped.ok()) return die(stepped.status());
    if (!*stepped && !core_->idle()) wait_for_others();
    publish_stats();
    core_->prefault_between_steps();
  }
  take_commands();
  const Status ended = core_->cancel_all();
  if (!ended.ok()) return die(ended);
  publish_stats();
  core_->store_cache();
}

// REQUIRES: mutex_.
bool ThreadedEngine::has_work() const {
  return stopping_ || !resets_.empty() || !submissions_.empty() || !cancellations_.empty();
}

// Waits until there is something to do, and takes the callers' commands. False: the engine ends.
bool ThreadedEngine::wait_for_work() {
  std::unique_lock lock(mutex_);
  const auto may_go_on = [this] { return has_work() || !core_->idle(); };
  // While idle, page in memory, so that the next request need not wait for it.
  for (bool has_more = true; has_more && !may_go_on();) {
    lock.unlock();
    has_more = core_->prefault();
    lock.lock();
  }
  work_.wait(lock, may_go_on);
  taken_submissions_.swap(submissions_);
  taken_cancellations_.swap(cancellations_);
  taken_resets_.swap(resets_);
  // Count the submissions as waiting now. Otherwise the statistics would lack them until the step.
  stats_.num_waiting += std::exchange(num_submitted_, 0);
  return !stopping_;
}

// Waits for threads that make masks or read blocks. They do not notify this thread, so it checks
// again soon.
void ThreadedEngine::wait_for_others() {
  std::unique_lock lock(mutex_);
  work_.wait_for(lock, kBetweenLooks, [this] { return has_work(); });
}

void ThreadedEngine::take_commands() {
  for (const std::string& owner : taken_resets_) core_->reset_prefix_cache(owner);
  taken_resets_.clear();
  for (Submission& submission : taken_submissions_)
    core_->add(submission.id, std::move(submission.request), std::exchange(submission.sink, {}));
  taken_submissions_.clear();
  for (const Cancellation& cancellation : taken_cancellations_) {
    if (cancellation.sample_index) {
      core_->cancel_sample(cancellation.id, *cancellation.sample_index);
    } else {
      core_->cancel(cancellation.id);
    }
  }
  taken_cancellations_.clear();
}

void ThreadedEngine::leave_queue(const QueueDemand& demand) {
  const std::lock_guard lock(mutex_);
  queued_ -= demand;
}

void ThreadedEngine::publish_stats() {
  const EngineStats stats = core_->stats();
  const std::lock_guard lock(mutex_);
  stats_ = stats;
  if (stats_.num_running + stats_.num_waiting == 0 && submissions_.empty()) idle_.notify_all();
}

void ThreadedEngine::die(const Status& reason) {
  log_error("{}", reason.message());
  {
    const std::lock_guard lock(mutex_);
    // The other figures stay as they were last published: the engine's parts may be inconsistent.
    stats_.healthy = false;
    stats_.num_running = stats_.num_waiting = 0;
    stats_.num_free_blocks = stats_.num_blocks;
    for (Submission& submission : submissions_) taken_submissions_.push_back(std::move(submission));
    submissions_.clear();
    cancellations_.clear();
    num_submitted_ = 0;
    queued_ = {.num_requests = 0};
    idle_.notify_all();
  }
  core_->fail_all(reason);
  for (const Submission& submission : taken_submissions_) {
    for (int i = 0; submission.sink && i < submission.request.sampling.n; ++i) {
      submission.sink({.sample_index = i,
                       .finish_reason = FinishReason::kError,
                       .error = reason,
                       .time = Clock::system().now()});
    }
  }
  taken_submissions_.clear();
}

}  // namespace pagoda
