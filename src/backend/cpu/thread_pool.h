// ThreadPool: the cpu backend's workers, over which one step's ops are forked and joined many
// times.
//
// Each thread has its own contiguous part of the work, always the same. It goes through the part in
// ascending order, so that it reads one stream of weights. A thread that is done with its own part
// takes one that no thread has begun. Where work is long, it also takes the end of another thread's
// part. So a thread which the system keeps from running holds up no more than what it was at.
// (Chase and Lev's work-stealing deques, 2005, with a range for a deque.) No result may depend on
// which thread computes which range (batch invariance).
//
// A worker that has nothing to do spins, because the next op comes within microseconds. It sleeps
// once a request must have ended, so that an idle process uses no CPU. Where other processes want
// our cores, workers sleep between steps: it is there that the scheduler should stop them. No
// thread yields, which Linux 6.18 takes for giving up a whole slice.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "backend/cpu/prefetch_level.h"

namespace pagoda::cpu {

// Returns where the part of thread t of n begins, of `count` that threads share out: equal parts in
// order.
inline std::int64_t part_begin(std::int64_t count, int thread, int num_threads) {
  return count * thread / num_threads;
}

class ThreadPool {
 public:
  // Starts num_threads - 1 threads: the caller is one of them. Throws NoThread.
  explicit ThreadPool(int num_threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int num_threads() const { return num_threads_; }

  // Calls body(begin, end, thread) on ranges that cover [0, count) once each, in parallel, and
  // returns when all are done. Thread t of n begins with the t-th of n equal parts and is called
  // for ranges of it in ascending order. A range is a multiple of `grain` long but for the last;
  // work of one grain stays on the caller. `thread` is 0 to num_threads() - 1, and no two calls of
  // one `thread` run at a time. One parallel_for at a time, from one thread; `body` must not call
  // back.
  template <typename Body>
  void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
    parallel_for(
        count, grain, [](std::int64_t, int) {}, body);
  }

  // Does the same; a thread calls start(begin, thread) before its first range, which begins there.
  // Work so small that each thread can do it for itself costs no fork and no join of its own there.
  template <typename Start, typename Body>
  void parallel_for(std::int64_t count, std::int64_t grain, Start&& start, Body&& body) {
    using Target = std::pair<std::remove_reference_t<Start>&, std::remove_reference_t<Body>&>;
    Target target = {start, body};
    run({.count = count,
         .grain = grain,
         .body = &target,
         .call = [](void* job, std::int64_t begin, std::int64_t end, int thread, bool is_first) {
           if (is_first) static_cast<Target*>(job)->first(begin, thread);
           static_cast<Target*>(job)->second(begin, end, thread);
         }});
  }

  // Makes workers prefetch bytes of a later job into their caches, while they wait after the next
  // job: of_threads[t] by thread t; the caller's own, [0], are left out. Bytes are prefetched and
  // not read, so memory that is gone does no harm. `of_threads` itself lives until the next
  // parallel_for returns. Called from the thread that calls parallel_for.
  void fetch_behind_next(std::span<const std::span<const std::byte>> of_threads, FetchTime time) {
    ahead_ = {of_threads, time};
  }

 private:
  struct Job {
    std::int64_t count;
    std::int64_t grain;
    void* body;
    void (*call)(void* body, std::int64_t begin, std::int64_t end, int thread, bool is_first);
    std::int64_t most_units = 1;  // that a thread's part is divided into
  };

  // Calls of the same body and count, which take about the same time.
  struct Kind {
    std::uintptr_t key = 0;
    std::uint32_t last_job = 0;
    std::uint32_t num_calls = 0;
    std::chrono::nanoseconds time{0};  // the last time that one was timed
  };

  // The work that a thread still has to do, in units of its part.
  struct Rest {
    std::uint32_t job = 0;    // which one; jobs are counted from 1
    std::uint32_t begin = 0;  // below 2^16
    std::uint32_t end = 0;
  };
  void end_threads();
  static std::uint64_t pack(const Rest& rest);
  static Rest unpack(std::uint64_t word);

  // All that a thread needs to begin, on a cache line that the caller writes once a job. A thread
  // that comes late may read it while the next job is written: its claim, an exchange of `rest`,
  // fails then, and what it has read is dropped. Two lines apart, because processors fetch pairs.
  struct alignas(128) Lane {
    std::atomic<std::uint64_t> rest{0};
    std::atomic<std::int64_t> count{0};
    std::atomic<std::int64_t> grain{1};
    std::atomic<std::int64_t> most_units{1};
    std::atomic<void*> body{nullptr};
    std::atomic<decltype(Job::call)> call{nullptr};
    // The bytes to fetch between this job and the next.
    std::atomic<const std::byte*> ahead{nullptr};
    std::atomic<std::size_t> num_ahead{0};

    void fetch(std::span<const std::byte> bytes) {
      num_ahead.store(bytes.size(), std::memory_order_relaxed);
      ahead.store(bytes.data(), std::memory_order_release);
    }
  };
  // Bytes that workers fetch behind a job.
  struct Ahead {
    std::span<const std::span<const std::byte>> of_threads;
    FetchTime time = FetchTime::kAllAreDone;

    std::span<const std::byte> of(int thread) const {
      const auto index = static_cast<std::size_t>(thread);
      return index < of_threads.size() ? of_threads[index] : std::span<const std::byte>();
    }
  };
  // The work that a thread has finished, written once a job: job << 32 | units of work.
  struct alignas(128) Tally {
    std::atomic<std::uint64_t> finished{0};
  };

  void run(Job job);
  Kind& kind_of(const Job& job);
  std::chrono::steady_clock::duration spin_time() const;
  std::uint32_t publish(const Job& job, std::uint32_t number, const Ahead& ahead);
  void finish(std::uint32_t number, std::uint32_t num_units);
  std::uint32_t num_finished(std::uint32_t number) const;
  std::uint32_t work(std::uint32_t number, int thread);
  std::uint32_t work_on(std::uint32_t number, int owner, int thread, bool is_first);
  void tell_finished(int thread, std::uint32_t number, std::uint32_t done);
  std::uint32_t sleep_until_job(int thread, std::uint32_t last);
  void work_loop(int thread);

  const int num_threads_;
  std::uint32_t number_ = 0;  // of the last job
  Ahead ahead_;               // of the next one
  // A set for each hash. Kinds are told apart by where the linker and the system have put their
  // code. A set is large enough that a step's kinds keep their times wherever that is.
  std::array<std::array<Kind, 16>, 16> kinds_;
  std::chrono::steady_clock::time_point crowded_until_;
  std::unique_ptr<Lane[]> lanes_;
  std::unique_ptr<Tally[]> tallies_;
  alignas(128) std::atomic<std::uint32_t> num_asleep_{0};
  std::atomic<std::uint32_t> num_wakes_{0};  // sleepers wait for it to change
  std::atomic<bool> stop_{false};
  std::atomic<bool> is_crowded_{false};  // others want our cores, until crowded_until_
  std::atomic<int> caller_cpu_{-1};      // from which it last woke a worker
  alignas(128) std::atomic<bool> caller_sleeps_{false};
  std::atomic<std::uint32_t> caller_wakes_{0};
  std::vector<std::thread> threads_;
};

}  // namespace pagoda::cpu
