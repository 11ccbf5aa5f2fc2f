#include "backend/host_threads.h"

#include "backend/cpu/cpu_exec.h"
#include "core/machine.h"

namespace pagoda {

HostThreads::HostThreads(Exec& exec)
    : pool_(exec.backend() == Backend::kCpu ? &cpu::pool_of(exec) : nullptr),
      num_threads_(pool_ ? pool_->num_threads() : default_num_threads()) {}

void HostThreads::parallel_for(std::int64_t count,
                               const std::function<void(std::int64_t i, int thread)>& body) {
  if (count == 1) body(0, 0);
  if (count <= 1) return;
  if (!pool_) {
    own_pool_ = std::make_unique<cpu::ThreadPool>(num_threads_);
    pool_ = own_pool_.get();
  }
  pool_->parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
    for (std::int64_t i = begin; i < end; ++i) body(i, thread);
  });
}

}  // namespace pagoda
