// The backends that this binary was built with.
//
// A backend that is not built is a stub that the linker picks (src/backend/absent, src/ops/absent):
// no #ifdef anywhere.
#pragma once

#include <memory>

#include "core/status.h"
#include "tensor/exec.h"

namespace pagoda {

struct ExecOptions {
  Backend backend = Backend::kCpu;
  int num_threads = 0;  // 0: what core/machine.h counts; ignored by mlx and cuda
};

// kUnsupported: "[device] mlx: not built into this binary"; kUnavailable: built, but the machine
// lacks the device.
Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options);
bool backend_is_built(Backend backend);

namespace reference {
Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options);
}
namespace cpu {
Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options);
}
namespace mlx {
extern const bool kBuilt;
Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options);
}  // namespace mlx
namespace cuda {
extern const bool kBuilt;
Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options);
}  // namespace cuda

}  // namespace pagoda
