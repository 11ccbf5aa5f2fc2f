// A GPU's limits, measured: what no kernel of ours can pass, for figures to stand beside.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "core/status.h"
#include "tensor/exec.h"

namespace pagoda::mlx {

// The size of what is timed, which a test makes small.
struct GpuPeakWork {
  std::int64_t read_bytes = std::int64_t{512} << 20;  // past any cache; a multiple of 128 KiB
  int fma_groups = 2048;                              // of 256 threads
  int fma_rounds = 64;                                // of 512 fma a thread
};

// Times reads of 16 bytes and chains of fma: the best of five runs of 0.05 s each, by the host's
// clock. Checks the results of every run; kUnavailable where they are wrong. REQUIRES: an Exec of
// the mlx backend that uses Metal. Takes half a second.
Result<GpuPeaks> measure_gpu_peaks(Exec& exec, const GpuPeakWork& work = {});

}  // namespace pagoda::mlx
