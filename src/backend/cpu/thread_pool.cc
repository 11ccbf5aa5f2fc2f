#include "backend/cpu/thread_pool.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pagoda::cpu {
namespace {

// About 50 microseconds: longer than the gaps between a step's ops, shorter than anybody notices.
constexpr int kSpins = 1500;
// Several ranges a thread, so that one that started late or was interrupted leaves its share to the
// others.
constexpr std::int64_t kRangesPerThread = 4;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until `value` is no longer `old`: spinning first, then asleep.
std::uint32_t wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    const std::uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    relax();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) : num_threads_(std::max(num_threads, 1)) {
  threads_.reserve(num_threads_ - 1);
  for (int thread = 1; thread < num_threads_; ++thread) {
    threads_.emplace_back([this, thread] { work_loop(thread); });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(std::int64_t count, std::int64_t grain, void* body, Call call) {
  if (count <= 0) return;
  if (num_threads_ == 1 || count <= grain) {
    call(body, 0, count, 0);
    return;
  }
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t most = num_threads_ * kRangesPerThread;
  const std::int64_t range = (grains + most - 1) / most * grain;
  const auto num_ranges = static_cast<std::uint32_t>((count + range - 1) / range);
  work_.count.store(count, std::memory_order_relaxed);
  work_.range.store(range, std::memory_order_relaxed);
  work_.body.store(body, std::memory_order_relaxed);
  work_.call.store(call, std::memory_order_relaxed);
  unfinished_.store(num_ranges, std::memory_order_relaxed);
  const std::uint32_t job = job_.load(std::memory_order_relaxed) + 1;
  ticket_.store(std::uint64_t{job} << 32 | num_ranges, std::memory_order_release);
  job_.store(job, std::memory_order_release);
  job_.notify_all();
  run_ranges(job, 0);
  std::uint32_t left = unfinished_.load(std::memory_order_acquire);
  while (left != 0) left = wait_while(unfinished_, left);
}

void ThreadPool::run_ranges(std::uint32_t job, int thread) {
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (ticket >> 32 == job && (ticket & 0xffffffffu) != 0) {
    const std::int64_t count = work_.count.load(std::memory_order_relaxed);
    const std::int64_t range = work_.range.load(std::memory_order_relaxed);
    void* const body = work_.body.load(std::memory_order_relaxed);
    const Call call = work_.call.load(std::memory_order_relaxed);
    // The claim holds only while this job has a range left, and until that is done nobody writes
    // work_.
    if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
      continue;
    }
    const std::int64_t num_ranges = (count + range - 1) / range;
    const std::int64_t index = num_ranges - static_cast<std::int64_t>(ticket & 0xffffffffu);
    call(body, index * range, std::min((index + 1) * range, count), thread);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void ThreadPool::work_loop(int thread) {
  std::uint32_t seen = 0;
  while (true) {
    seen = wait_while(job_, seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    run_ranges(seen, thread);
  }
}

}  // namespace pagoda::cpu
