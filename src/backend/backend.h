// The backends that this binary was built with.
//
// A backend that is not built is a stub that the linker picks (src/backend/absent): no #ifdef
// anywhere.
#pragma once

#include <memory>
#include <optional>

#include "backend/cpu/cpu_isa.h"
#include "core/status.h"
#include "tensor/exec.h"

namespace pagoda {

struct ExecOptions {
  Backend backend = Backend::kCpu;
  int num_threads = 0;  // 0: default_num_threads(); ignored by mlx and cuda
  // The cpu backend's instruction set. Left out: that of PAGODA_CPU_ISA, else the machine's best.
  std::optional<CpuIsa> cpu_isa;
  // The cpu backend's products round x to bytes if the weights have four or eight bits. (Not for
  // IQ4_NL and IQ4_XS, whose codes are indices of a table.) This halves the work; the rounding
  // error is 7e-3 of x instead of 2e-5. kUnsupported without AVX-512, and on other backends.
  bool int8_activations = false;
};

// Makes the Exec of a backend. kUnsupported ("[device] mlx: not built into this binary") if it is
// not built; kUnavailable if it is built, but the machine lacks the device.
Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options);
bool backend_is_built(Backend backend);
// Returns whether the backend is built and finds its GPU.
bool backend_has_gpu(Backend backend);
// Returns whether a backend for GPUs has none here and computes ops by the cpu backend's bodies:
// mlx on Linux.
bool computes_on_host(Backend backend);
// Returns whether the backend is built, and has what it needs on this machine.
bool backend_is_here(Backend backend);
// Makes the Exec of the best backend that is built and finds its device: one with a GPU, else cpu. A
// GPU that cannot be used is logged, such as one without its compiler. Ignores options.backend.
Result<std::unique_ptr<Exec>> make_best_exec(ExecOptions options);

namespace reference {
Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options);
}
namespace cpu {
Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options);
}
namespace mlx {
extern const bool kBuilt;
bool has_gpu();
Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options);
}  // namespace mlx
namespace cuda {
extern const bool kBuilt;
bool has_gpu();
Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options);
}  // namespace cuda

}  // namespace pagoda
