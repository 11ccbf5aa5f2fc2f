// CpuExec: the cpu backend's Exec: an arena and worker threads.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/thread_pool.h"
#include "backend/native_exec.h"

namespace pagoda::cpu {

class CpuExec final : public NativeExec {
 public:
  static Result<std::unique_ptr<Exec>> create(const ExecOptions& options);

  int num_threads() const override { return pool_.num_threads(); }
  ThreadPool& pool() { return pool_; }

 private:
  CpuExec(Arenas arenas, int num_threads)
      : NativeExec(Backend::kCpu, std::move(arenas)), pool_(num_threads) {}

  ThreadPool pool_;
};

// An op's body is only ever called with its own backend's Exec.
inline ThreadPool& pool_of(Exec& exec) {
  return static_cast<CpuExec&>(exec).pool();
}

}  // namespace pagoda::cpu
