// ThreadPool: the cpu backend's workers, one step's ops forked and joined over them many times.
//
// A worker that has nothing to do spins for a short while, because the next op comes within
// microseconds, and then sleeps, so that an idle process uses no CPU. A call allocates nothing.
// Work is cut into fixed ranges; no result may depend on who computes which range (design: one
// arithmetic).
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

  // Calls body(begin, end, thread) on ranges that cover [0, count) once each, at most one a thread,
  // in parallel; returns when all are done. Ranges are multiples of `grain` but for the last, and
  // work of one grain stays on the caller. One call at a time, from one thread; `body` must not
  // call back.
  template <typename Body>
  void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
    using Target = std::remove_reference_t<Body>;
    run({.count = count,
         .grain = grain,
         .body = const_cast<void*>(static_cast<const void*>(&body)),
         .call = [](void* target, std::int64_t begin, std::int64_t end, int thread) {
           (*static_cast<Target*>(target))(begin, end, thread);
         }});
  }

 private:
  struct Work {
    std::int64_t count = 0;
    std::int64_t grain = 1;
    void* body = nullptr;
    void (*call)(void* body, std::int64_t begin, std::int64_t end, int thread) = nullptr;
  };

  void run(const Work& work);
  void run_range(const Work& work, int thread) const;
  void work_loop(int thread);

  const int num_threads_;
  Work work_;
  // Each on a cache line of its own: workers spin on the first while others count down the second.
  alignas(64) std::atomic<std::uint32_t> generation_{0};  // counts the calls
  alignas(64) std::atomic<std::uint32_t> num_running_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace pagoda::cpu
