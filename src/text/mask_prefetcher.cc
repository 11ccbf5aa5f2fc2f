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

namespace pagoda {
namespace {

// Waking a thread and going back to sleep takes 15 us of the machine's time, and on one without an
// idle core as much of the forward's.
constexpr std::chrono::microseconds kLong(30);

}  // namespace

// One source's mask. Whoever has made it kRunning has the source and the mask for itself; in the
// other phases they are the source's caller's.
struct MaskPrefetcher::Job {
  enum class Phase : std::uint8_t { kIdle, kQueued, kRunning, kReady };

  Status fill(std::span<std::uint32_t> bits) {
    const auto start = std::chrono::steady_clock::now();
    Status filled = source->fill_mask(bits);
    takes_long = std::chrono::steady_clock::now() - start > kLong;
    return filled;
  }

  std::unique_ptr<TokenMaskSource> source;
  bool takes_long = false;
  std::vector<std::uint32_t> mask;
  Status status;
  Phase phase = Phase::kIdle;
};

struct MaskPrefetcher::Queue {
  void push(const std::shared_ptr<Job>& job) {
    const std::lock_guard lock(mutex);
    if (is_over) return;
    job->phase = Job::Phase::kQueued;
    jobs.push_back(job);
    if (!thread.joinable()) thread = std::thread([this] { run(); });
    work.notify_one();
  }

  // The caller has the job afterwards; true if its mask is ready.
  bool take(Job& job) {
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return job.phase != Job::Phase::kRunning; });
    return std::exchange(job.phase, Job::Phase::kIdle) == Job::Phase::kReady;
  }

  // Nobody asks for its mask any more.
  void drop(Job& job) {
    const std::lock_guard lock(mutex);
    if (job.phase == Job::Phase::kQueued) job.phase = Job::Phase::kIdle;
  }

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [this] { return is_over || !jobs.empty(); });
      if (is_over) return;
      const std::shared_ptr<Job> job = std::move(jobs.front());
      jobs.pop_front();
      if (job->phase != Job::Phase::kQueued) continue;  // its caller was faster
      job->phase = Job::Phase::kRunning;
      lock.unlock();
      job->status = job->fill(job->mask);
      lock.lock();
      job->phase = Job::Phase::kReady;
      done.notify_all();
    }
  }

  void end() {
    {
      const std::lock_guard lock(mutex);
      is_over = true;
      jobs.clear();
      work.notify_one();
    }
    if (thread.joinable()) thread.join();
  }

  std::mutex mutex;
  std::condition_variable work;  // for the thread
  std::condition_variable done;  // for those who wait for a mask
  std::deque<std::shared_ptr<Job>> jobs;
  bool is_over = false;
  std::thread thread;
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

  Status accept(int token_id) override {
    queue_->take(*job_);
    PAGODA_RETURN_IF_ERROR(job_->source->accept(token_id));
    is_stopped_ = job_->source->is_stopped();
    if (!is_stopped_ && job_->takes_long) queue_->push(job_);
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
