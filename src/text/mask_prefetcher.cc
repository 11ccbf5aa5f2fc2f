#include "text/mask_prefetcher.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/machine.h"
#include "core/start_thread.h"

namespace pagoda {
namespace {

// Waking a thread and going back to sleep takes 15 us of CPU time. On a machine without an idle
// core this delays the forward pass by as much.
constexpr std::chrono::microseconds kLong(30);
// A mask that takes longer must not delay the masks queued after it.
constexpr std::chrono::milliseconds kVeryLong(3);
constexpr unsigned kMaxQuickThreads = 4;
constexpr unsigned kMaxSlowThreads = 8;

}  // namespace

// The mask of one source. A thread that sets kRunning owns the source and the mask; in all other
// phases the source's caller owns them.
struct MaskPrefetcher::Job {
  enum class Phase : std::uint8_t { kIdle, kQueued, kRunning, kReady };

  Status fill(std::span<std::uint32_t> bits) {
    const auto start = std::chrono::steady_clock::now();
    Status filled = source->fill_mask(bits);
    last_took = std::chrono::steady_clock::now() - start;
    return filled;
  }
  bool takes_long() const { return last_took > kLong; }
  bool takes_very_long() const { return last_took > kVeryLong; }

  std::unique_ptr<TokenMaskSource> source;
  std::chrono::steady_clock::duration last_took{0};
  std::vector<std::uint32_t> mask;
  Status status;
  Phase phase = Phase::kIdle;
};

struct MaskPrefetcher::Queue {
  // A group of threads and their queue of jobs, first come first served.
  struct Lane {
    unsigned max_threads = 1;
    bool gives_way = false;
    std::condition_variable work;
    std::deque<std::shared_ptr<Job>> jobs;
    unsigned num_idle = 0;
    std::vector<std::thread> threads;
    bool has_none = false;  // the lane has no thread, because the system had none left
  };

  // Queues an idle job.
  void push(const std::shared_ptr<Job>& job) {
    const std::lock_guard lock(mutex);
    push_locked(job);
  }

  // Takes the job back from the queue, after waiting if it is running. Returns whether its mask is
  // ready.
  bool take(Job& job) {
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return job.phase != Job::Phase::kRunning; });
    return std::exchange(job.phase, Job::Phase::kIdle) == Job::Phase::kReady;
  }

  bool is_near(const Job& job) {
    const std::lock_guard lock(mutex);
    if (job.phase == Job::Phase::kReady || lane_of(job).has_none) return true;
    return job.phase != Job::Phase::kRunning && !job.takes_very_long();
  }

  bool wait_for(const std::shared_ptr<Job>& job, Clock::TimePoint deadline) {
    std::unique_lock lock(mutex);
    if (is_over) return true;  // the caller computes the mask itself
    if (job->phase == Job::Phase::kIdle) push_locked(job);
    if (lane_of(*job).has_none) return true;
    const auto is_ready = [&] { return is_over || job->phase == Job::Phase::kReady; };
    return done.wait_until(lock, deadline, is_ready);
  }

  // Cancels a queued job, because its source is being destroyed.
  void drop(Job& job) {
    const std::lock_guard lock(mutex);
    if (job.phase == Job::Phase::kQueued) job.phase = Job::Phase::kIdle;
  }

  void end() {
    {
      const std::lock_guard lock(mutex);
      is_over = true;
      for (Lane* lane : {&quick, &slow}) {
        lane->jobs.clear();
        lane->work.notify_all();
      }
      done.notify_all();
    }
    for (Lane* lane : {&quick, &slow}) {
      for (std::thread& thread : lane->threads) thread.join();
    }
  }

  void push_locked(const std::shared_ptr<Job>& job) {
    if (is_over) return;
    Lane& lane = lane_of(*job);
    if (lane.jobs.size() + 1 > lane.num_idle && lane.threads.size() < lane.max_threads)
      add_thread(lane);
    if (lane.has_none) return;
    job->phase = Job::Phase::kQueued;
    lane.jobs.push_back(job);
    lane.work.notify_one();
  }

  // Adds a thread. If the system has no thread left, the lane keeps the threads that it has.
  void add_thread(Lane& lane) {
    try {
      lane.threads.push_back(start_thread([this, &lane] { run(lane); }));
    } catch (const NoThread&) {
    }
    lane.has_none = lane.threads.empty();
  }

  Lane& lane_of(const Job& job) { return job.takes_very_long() ? slow : quick; }

  void run(Lane& lane) {
    if (lane.gives_way) give_way();
    std::unique_lock lock(mutex);
    while (true) {
      ++lane.num_idle;
      lane.work.wait(lock, [&] { return is_over || !lane.jobs.empty(); });
      --lane.num_idle;
      if (is_over) return;
      const std::shared_ptr<Job> job = std::move(lane.jobs.front());
      lane.jobs.pop_front();
      if (job->phase != Job::Phase::kQueued) continue;  // the caller took it back before
      job->phase = Job::Phase::kRunning;
      lock.unlock();
      job->status = job->fill(job->mask);
      lock.lock();
      job->phase = Job::Phase::kReady;
      done.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable done;  // notified when a mask is ready
  bool is_over = false;
  const unsigned num_cores = std::thread::hardware_concurrency();
  Lane quick{.max_threads = std::clamp(num_cores / 2, 1u, kMaxQuickThreads)};
  Lane slow{.max_threads = std::clamp(num_cores, 1u, kMaxSlowThreads), .gives_way = true};
};

class PrefetchingMaskSource final : public TokenMaskSource {
 public:
  PrefetchingMaskSource(std::shared_ptr<MaskPrefetcher::Queue> queue,
                        std::unique_ptr<TokenMaskSource> source)
      : queue_(std::move(queue)),
        job_(std::make_shared<MaskPrefetcher::Job>()),
        is_stopped_(source->is_stopped()) {
    job_->source = std::move(source);
  }

  ~PrefetchingMaskSource() override { queue_->drop(*job_); }

  std::unique_ptr<TokenMaskSource> clone() const override {
    queue_->take(*job_);
    return std::make_unique<PrefetchingMaskSource>(queue_, job_->source->clone());
  }

  Status fill_mask(std::span<std::uint32_t> bits) override {
    if (queue_->take(*job_)) {
      PAGODA_CHECK(job_->mask.size() == bits.size(), "[grammar] a mask changed its size");
      std::copy(job_->mask.begin(), job_->mask.end(), bits.begin());
      return job_->status;
    }
    job_->mask.resize(bits.size());
    return job_->fill(bits);
  }

  bool is_mask_near() const override { return queue_->is_near(*job_); }

  bool wait_for_mask(Clock::TimePoint deadline) override {
    // Only the caller of fill_mask() knows the mask's size, so no mask is computed ahead of the
    // first call.
    return job_->mask.empty() || queue_->wait_for(job_, deadline);
  }

  Status accept(int token_id) override {
    queue_->take(*job_);
    PAGODA_RETURN_IF_ERROR(job_->source->accept(token_id));
    is_stopped_ = job_->source->is_stopped();
    if (!is_stopped_ && job_->takes_long()) queue_->push(job_);
    return ok_status();
  }

  bool is_stopped() const override { return is_stopped_; }

 private:
  std::shared_ptr<MaskPrefetcher::Queue> queue_;
  std::shared_ptr<MaskPrefetcher::Job> job_;
  bool is_stopped_;
};

MaskPrefetcher::MaskPrefetcher() : queue_(std::make_shared<Queue>()) {}

MaskPrefetcher::~MaskPrefetcher() {
  queue_->end();
}

std::unique_ptr<TokenMaskSource> MaskPrefetcher::wrap(std::unique_ptr<TokenMaskSource> source) {
  return std::make_unique<PrefetchingMaskSource>(queue_, std::move(source));
}

}  // namespace pagoda
