// HostThreads: threads for the host's own work beside the ops, on every backend. They are the
// Exec's workers if it has any, else threads of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "backend/cpu/thread_pool.h"
#include "tensor/exec.h"

namespace pagoda {

// Used only by the Exec's thread.
class HostThreads {
 public:
  // REQUIRES: `exec` outlives this. Own threads are started by the first call that needs them, as
  // many as default_num_threads() (core/machine.h).
  explicit HostThreads(Exec& exec);

  int num_threads() const { return num_threads_; }
  // Calls body(i, thread) once for each of [0, count), in any order, and returns when all are done.
  // `thread` is below num_threads(), and no two calls of one thread run at a time. A single call
  // runs on the caller. `body` must not throw or call an op.
  void parallel_for(std::int64_t count,
                    const std::function<void(std::int64_t i, int thread)>& body);

 private:
  cpu::ThreadPool* pool_ = nullptr;
  std::unique_ptr<cpu::ThreadPool> own_pool_;
  int num_threads_;
};

}  // namespace pagoda
