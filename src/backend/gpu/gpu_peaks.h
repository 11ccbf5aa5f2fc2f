// The measured peak speeds of a GPU, which none of our kernels can exceed. The speeds of kernels
// are compared with them.
#pragma once

#include <cstdint>
#include <optional>

#include "core/status.h"
#include "tensor/exec.h"

namespace pagoda::gpu {

struct GpuPeaks {
  double read_gb_per_s = 0;    // GB = 10^9 bytes
  double fma_gflop_per_s = 0;  // float32; a product and a sum are two operations
};

// The size of the timed work. Tests make it small.
struct GpuPeakWork {
  std::int64_t read_bytes = std::int64_t{512} << 20;  // larger than caches; a multiple of 128 KiB
  int fma_groups = 2048;                              // 256 threads each
  int fma_rounds = 64;                                // 512 fma each, per thread
};

// Times reads of 16 bytes and chains of fma: the best of five runs of 0.05 s each, by the host's
// clock. Checks the results of every run; kUnavailable if they are wrong. REQUIRES: a
// GpuExec that uses kernels. Takes half a second.
Result<GpuPeaks> measure_gpu_peaks(Exec& exec, const GpuPeakWork& work = {});

// Does the same. Returns nothing if the ops of the GpuExec do not run on a GPU.
Result<std::optional<GpuPeaks>> gpu_peaks(Exec& exec);

}  // namespace pagoda::gpu
