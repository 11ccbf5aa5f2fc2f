// Makes the backend's Exec. The function has a file of its own so that a test can replace it.
#include <mlx/device.h>
#include <mlx/memory.h>

#include <exception>

#include "backend/backend.h"
#include "backend/mlx/gpu_limits.h"
#include "backend/mlx/metal_dispatch.h"
#include "backend/mlx/mlx_exec.h"

namespace pagoda::mlx {

extern const bool kBuilt = true;

bool has_gpu() {
  return metal_is_available();
}

Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options) {
  if (!metal_is_available()) {
    ExecOptions host = options;
    host.backend = Backend::kCpu;
    PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<Exec> exec, cpu::make_exec(host));
    return std::unique_ptr<Exec>(
        std::make_unique<MlxExec>(std::make_shared<HostBodies>(std::move(exec))));
  }
  try {
    prepare_gpu();
    MlxExec probe(nullptr);
    PAGODA_ASSIGN_OR_RETURN(const gpu::MatrixUnits units, gpu::find_matrix_units(probe));
    return std::unique_ptr<Exec>(std::make_unique<MlxExec>(nullptr, units));
  } catch (const std::exception& error) {
    return unavailable("[device] mlx: {}", error.what());
  }
}

}  // namespace pagoda::mlx
