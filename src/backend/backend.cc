#include "backend/backend.h"

#include <utility>

namespace pagoda {

Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options) {
  if (options.int8_activations && !traits_of(options.backend).takes_bytes) {
    return unsupported("[device] int8 activations: expected --device cpu, got {}",
                       backend_name(options.backend));
  }
  switch (options.backend) {
    case Backend::kReference:
      return reference::make_exec(options);
    case Backend::kCpu:
      return cpu::make_exec(options);
    case Backend::kMlx:
      return mlx::make_exec(options);
    case Backend::kCuda:
      return cuda::make_exec(options);
  }
  return internal_error("[device] unknown backend {}", static_cast<int>(options.backend));
}

bool backend_is_built(Backend backend) {
  switch (backend) {
    case Backend::kReference:
    case Backend::kCpu:
      return true;
    case Backend::kMlx:
      return mlx::kBuilt;
    case Backend::kCuda:
      return cuda::kBuilt;
  }
  return false;
}

Result<std::unique_ptr<Exec>> make_best_exec(ExecOptions options) {
  const std::pair<Backend, bool> gpus[] = {{Backend::kCuda, cuda::has_gpu()},
                                           {Backend::kMlx, mlx::has_gpu()}};
  for (const auto& [backend, has_gpu] : gpus) {
    if (!has_gpu) continue;
    options.backend = backend;
    Result<std::unique_ptr<Exec>> exec = make_exec(options);
    if (exec.ok()) return exec;
  }
  options.backend = Backend::kCpu;
  return make_exec(options);
}

}  // namespace pagoda
