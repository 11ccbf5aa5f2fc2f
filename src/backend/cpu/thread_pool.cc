#include "backend/cpu/thread_pool.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pagoda::cpu {
namespace {

// About 50 microseconds: longer than the gaps between the ops of a step, shorter than anybody
// notices.
constexpr int kSpins = 2000;

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
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(const Work& work) {
  if (work.count <= 0) return;
  if (num_threads_ == 1 || work.count <= work.grain) {
    work.call(work.body, 0, work.count, 0);
    return;
  }
  work_ = work;
  num_running_.store(static_cast<std::uint32_t>(num_threads_ - 1), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  run_range(work, 0);
  std::uint32_t running = num_running_.load(std::memory_order_acquire);
  while (running != 0) running = wait_while(num_running_, running);
}

void ThreadPool::run_range(const Work& work, int thread) const {
  const std::int64_t grains = (work.count + work.grain - 1) / work.grain;
  const std::int64_t begin = grains * thread / num_threads_ * work.grain;
  const std::int64_t end = std::min(grains * (thread + 1) / num_threads_ * work.grain, work.count);
  if (begin < end) work.call(work.body, begin, end, thread);
}

void ThreadPool::work_loop(int thread) {
  std::uint32_t seen = 0;
  while (true) {
    seen = wait_while(generation_, seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    run_range(work_, thread);
    if (num_running_.fetch_sub(1, std::memory_order_acq_rel) == 1) num_running_.notify_one();
  }
}

}  // namespace pagoda::cpu
