// ThreadPool: the cpu backend's workers, over which one step's ops are forked and joined many
// times.
//
// A worker that has nothing to do spins for a short while, because the next op comes within
// microseconds, and then sleeps, so that an idle process uses no CPU. Work is cut into fixed ranges
// that threads claim one after another: a worker that the system keeps from running takes none, and
// nobody waits for it. No result may depend on who computes which range (design: one arithmetic). A
// call allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace pagoda::cpu {

class ThreadPool {
 public:
  // `num_threads` counts the caller: one less is started.
  explicit ThreadPool(int num_threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int num_threads() const { return num_threads_; }

  // Calls body(begin, end, thread) on ranges that cover [0, count) once each, in parallel, and
  // returns when all are done. A range is a multiple of `grain` long but for the last; work of one
  // grain stays on the caller. `thread` is 0 to num_threads() - 1, and no two calls of one `thread`
  // run at a time. One parallel_for at a time, from one thread; `body` must not call back.
  template <typename Body>
  void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
    using Target = std::remove_reference_t<Body>;
    run(count, grain, const_cast<void*>(static_cast<const void*>(&body)),
        [](void* target, std::int64_t begin, std::int64_t end, int thread) {
          (*static_cast<Target*>(target))(begin, end, thread);
        });
  }

 private:
  using Call = void (*)(void* body, std::int64_t begin, std::int64_t end, int thread);

  // The work under way. A worker that comes late may read it while the next is written: its claim
  // fails then, and what it has read is dropped.
  struct Work {
    std::atomic<std::int64_t> count{0};
    std::atomic<std::int64_t> range{1};  // the length of each
    std::atomic<void*> body{nullptr};
    std::atomic<Call> call{nullptr};
  };

  void run(std::int64_t count, std::int64_t grain, void* body, Call call);
  void run_ranges(std::uint32_t job, int thread);
  void work_loop(int thread);

  const int num_threads_;
  Work work_;
  // Each on a cache line of its own, because all threads write them.
  alignas(64) std::atomic<std::uint32_t> job_{0};         // counts the calls; workers sleep on it
  alignas(64) std::atomic<std::uint64_t> ticket_{0};      // job << 32 | ranges not yet claimed
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};  // ranges
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace pagoda::cpu
