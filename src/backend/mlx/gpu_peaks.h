// The measured peak speeds of a GPU, which none of our kernels can exceed. The speeds of kernels
// are compared with them.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "core/status.h"
#include "tensor/exec.h"

namespace pagoda::mlx {

// The size of the timed work. Tests make it small.
struct GpuPeakWork {
  std::int64_t read_bytes = std::int64_t{512} << 20;  // larger than caches; a multiple of 128 KiB
  int fma_groups = 2048;                              // 256 threads each
  int fma_rounds = 64;                                // 512 fma each, per thread
};

// Times reads of 16 bytes and chains of fma: the best of five runs of 0.05 s each, by the host's
// clock. Checks the results of every run; kUnavailable if they are wrong. REQUIRES: an Exec of
// the mlx backend that uses Metal. Takes half a second.
Result<GpuPeaks> measure_gpu_peaks(Exec& exec, const GpuPeakWork& work = {});

}  // namespace pagoda::mlx
