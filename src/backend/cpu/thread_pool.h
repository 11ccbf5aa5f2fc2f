// ThreadPool: the cpu backend's worker threads. Each op of a step forks its work to them and joins.
//
// Each thread has its own contiguous part of an op's work, the same one in every step. It processes
// the part in ascending order, so that it reads one stream of weights. A thread that is done with
// its own part takes a part that no thread has begun. If the work is long, it also takes units from
// the end of another thread's part. So a thread that the system has stopped delays only what it has
// claimed. (Chase and Lev's work-stealing deques, 2005, with a range instead of a deque.) No result
// may depend on which thread computes which range (batch invariance).
//
// An idle worker spins, because the next op comes within microseconds. It sleeps after a longer
// wait, so that an idle process uses no CPU. While other processes want our cores, workers sleep
// between steps, so that the system's scheduler stops them there and not in a step. Threads never
// call yield: with Linux 6.18 a thread that yields loses a whole time slice.
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

// Returns where the thread's part begins if [0, count) is divided into equal parts, in the order of
// the threads.
inline std::int64_t part_begin(std::int64_t count, int thread, int num_threads) {
  return count * thread / num_threads;
}

class ThreadPool {
 public:
  // Starts num_threads - 1 threads; the caller is the remaining one. Throws NoThread.
  explicit ThreadPool(int num_threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int num_threads() const { return num_threads_; }

  // Calls body(begin, end, thread) on ranges that cover [0, count) once each, in parallel, and
  // returns when all are done. Thread t of n begins with the t-th of n equal parts and processes
  // its ranges in ascending order. The length of every range except the last is a multiple of
  // `grain`; work of one grain runs on the caller. `thread` is 0 to num_threads() - 1, and no two
  // calls with the same `thread` run at a time. Only one thread may call parallel_for, and `body`
  // must not.
  template <typename Body>
  void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
    parallel_for(
        count, grain, [](std::int64_t, int) {}, body);
  }

  // Does the same, but each thread calls start(begin, thread) before its first range, which starts
  // at `begin`. `start` is for work so small that each thread can repeat it: that saves a fork and
  // join.
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

  // Makes workers prefetch bytes of a later job into their caches while they wait after the next
  // job. Thread t prefetches of_threads[t]; the caller, thread 0, prefetches nothing. The bytes are
  // not read, so they may be in freed memory. `of_threads` itself must live until the next
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
    std::int64_t most_units = 1;  // units that a thread's part is divided into
  };

  // Calls of the same body and count, which take about the same time.
  struct Kind {
    std::uintptr_t key = 0;
    std::uint32_t last_job = 0;
    std::uint32_t num_calls = 0;
    std::chrono::nanoseconds time{0};  // time of the last call that was timed
  };

  // The work that a thread still has to do, in units of its part.
  struct Rest {
    std::uint32_t job = 0;    // the job's number, from 1
    std::uint32_t begin = 0;  // below 2^16
    std::uint32_t end = 0;
  };
  void end_threads();
  static std::uint64_t pack(const Rest& rest);
  static Rest unpack(std::uint64_t word);

  // All that a thread needs to begin, on a cache line that the caller writes once per job. A late
  // thread may read the line while the next job is written. Then its claim, a compare-exchange of
  // `rest`, fails, and it drops what it has read. Aligned to the pairs of lines that processors
  // fetch.
  struct alignas(128) Lane {
    std::atomic<std::uint64_t> rest{0};
    std::atomic<std::int64_t> count{0};
    std::atomic<std::int64_t> grain{1};
    std::atomic<std::int64_t> most_units{1};
    std::atomic<void*> body{nullptr};
    std::atomic<decltype(Job::call)> call{nullptr};
    // The bytes to prefetch between this job and the next.
    std::atomic<const std::byte*> ahead{nullptr};
    std::atomic<std::size_t> num_ahead{0};

    void fetch(std::span<const std::byte> bytes) {
      num_ahead.store(bytes.size(), std::memory_order_relaxed);
      ahead.store(bytes.data(), std::memory_order_release);
    }
  };
  // Bytes that workers prefetch after a job.
  struct Ahead {
    std::span<const std::span<const std::byte>> of_threads;
    FetchTime time = FetchTime::kAllAreDone;

    std::span<const std::byte> of(int thread) const {
      const auto index = static_cast<std::size_t>(thread);
      return index < of_threads.size() ? of_threads[index] : std::span<const std::byte>();
    }
  };
  // The work that a thread has finished, written once per job: job << 32 | units of work.
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
  std::uint32_t number_ = 0;  // the last job's number
  Ahead ahead_;               // what workers prefetch after the next job
  // A set-associative table. A kind's key is made of its function's address, which differs from
  // build to build and run to run. One set has room for all kinds of a step, whatever their
  // addresses.
  std::array<std::array<Kind, 16>, 16> kinds_;
  std::chrono::steady_clock::time_point crowded_until_;
  std::unique_ptr<Lane[]> lanes_;
  std::unique_ptr<Tally[]> tallies_;
  alignas(128) std::atomic<std::uint32_t> num_asleep_{0};
  std::atomic<std::uint32_t> num_wakes_{0};  // sleepers wait for it to change
  std::atomic<bool> stop_{false};
  std::atomic<bool> is_crowded_{false};  // other processes want our cores, until crowded_until_
  std::atomic<int> caller_cpu_{-1};      // the caller's core when it last woke workers
  alignas(128) std::atomic<bool> caller_sleeps_{false};
  std::atomic<std::uint32_t> caller_wakes_{0};
  std::vector<std::thread> threads_;
};

}  // namespace pagoda::cpu
