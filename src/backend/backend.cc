#include "backend/backend.h"

#include "core/log.h"

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

bool backend_has_gpu(Backend backend) {
  switch (backend) {
    case Backend::kReference:
    case Backend::kCpu:
      return false;
    case Backend::kMlx:
      return mlx::has_gpu();
    case Backend::kCuda:
      return cuda::has_gpu();
  }
  return false;
}

bool computes_on_host(Backend backend) {
  return backend == Backend::kMlx && !mlx::has_gpu();
}

bool backend_is_here(Backend backend) {
  if (!backend_is_built(backend)) return false;
  return traits_of(backend).is_native || backend_has_gpu(backend) || computes_on_host(backend);
}

Result<std::unique_ptr<Exec>> make_best_exec(ExecOptions options) {
  for (const Backend backend : {Backend::kCuda, Backend::kMlx}) {
    if (!backend_has_gpu(backend)) continue;
    options.backend = backend;
    Result<std::unique_ptr<Exec>> exec = make_exec(options);
    if (exec.ok()) return exec;
    log_warning("{}; --device auto passes over this GPU", exec.status().message());
  }
  options.backend = Backend::kCpu;
  return make_exec(options);
}

}  // namespace pagoda
