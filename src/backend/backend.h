// The backends that this binary was built with.
//
// A backend that is not built is a stub that the linker picks (src/backend/absent,
// src/ops/bodies.cmake): no #ifdef anywhere.
#pragma once

#include <memory>
#include <optional>

#include "backend/cpu/cpu_isa.h"
#include "core/status.h"
#include "tensor/exec.h"

namespace pagoda {

struct ExecOptions {
  Backend backend = Backend::kCpu;
  int num_threads = 0;  // 0: what core/machine.h counts; ignored by mlx and cuda
  // cpu's instruction set; left out: PAGODA_CPU_ISA, or the best that the machine has.
  std::optional<CpuIsa> cpu_isa;
  // cpu's products round x to bytes where the weights have four or eight bits (but IQ4_NL and
  // IQ4_XS, whose codes are no numbers): half as much work, and 7e-3 of x instead of 2e-5.
  // kUnsupported on a machine without AVX-512, and on other backends.
  bool int8_activations = false;
};

// Makes the Exec of a backend. kUnsupported: "[device] mlx: not built into this binary";
// kUnavailable: built, but the machine lacks the device.
Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options);
bool backend_is_built(Backend backend);
// Returns the best one that is built and finds its device: one with a GPU, else cpu.
// options.backend is passed over.
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

// The limits of a GPU, as code like our ops' finds them.
struct GpuPeaks {
  double read_gb_per_s = 0;    // GB = 10^9 bytes
  double fma_gflop_per_s = 0;  // float32; a product and a sum are two operations
};
// Measures them, which takes half a second; nothing where the backend's ops do not run on Metal.
// REQUIRES: an Exec of the mlx backend.
Result<std::optional<GpuPeaks>> gpu_peaks(Exec& exec);
}  // namespace mlx
namespace cuda {
extern const bool kBuilt;
bool has_gpu();
Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options);
}  // namespace cuda

}  // namespace pagoda
