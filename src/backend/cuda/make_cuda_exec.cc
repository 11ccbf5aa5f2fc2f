#include <filesystem>

#include "backend/backend.h"
#include "backend/cuda/cuda_exec.h"
#include "core/cache_folder.h"

namespace pagoda::cuda {
namespace {

Result<std::shared_ptr<Device>> open_device() {
  PAGODA_ASSIGN_OR_RETURN(std::shared_ptr<const Driver> driver, load_driver());
  return Device::open(std::move(driver));
}

}  // namespace

extern const bool kBuilt = true;

bool has_gpu() {
  static const bool has_one = open_device().ok();
  return has_one;
}

Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& /*options*/) {
  PAGODA_ASSIGN_OR_RETURN(std::shared_ptr<Device> device, open_device());
  PAGODA_ASSIGN_OR_RETURN(std::shared_ptr<Compiler> compiler, load_compiler());
  if (compiler->major_version() > device->driver_major()) {
    return unavailable(
        "[device] cuda: expected an NVRTC of CUDA {} or older, as the driver is, got {}",
        device->driver_major(), compiler->major_version());
  }
  const Result<std::filesystem::path> folder = cache_folder();
  PAGODA_ASSIGN_OR_RETURN(
      std::unique_ptr<CudaExec> exec,
      CudaExec::create(std::move(device), std::move(compiler),
                       folder.ok() ? *folder / "cuda" : std::filesystem::path()));
  return std::unique_ptr<Exec>(std::move(exec));
}

}  // namespace pagoda::cuda
