#include "backend/parallel_for.h"

#include "backend/cpu/cpu_exec.h"

namespace pagoda {

void parallel_for(Exec& exec, std::int64_t count,
                  const std::function<void(std::int64_t i, int thread)>& body) {
  if (exec.backend() != Backend::kCpu) {
    for (std::int64_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
  cpu::pool_of(exec).parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
    for (std::int64_t i = begin; i < end; ++i) body(i, thread);
  });
}

}  // namespace pagoda
