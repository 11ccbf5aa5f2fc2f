// Measures how fast products of one row read panels from memory, with each way to prefetch them.
//
// The kernels themselves run, because a loop that only loads would choose wrongly. On Zen 3 the
// loop's slowest way is one of the kernels' fastest. The loop is fastest with the hardware's
// prefetches alone, and the kernels are slowest with them (docs/performance/log.md).
#pragma once

#include "backend/cpu/cpu_exec.h"

namespace pagoda::cpu {

// Returns the way that is clearly the fastest for such panels, or else the usual one for the
// processor's family. For some ms all threads read a megabyte each that is in no cache. REQUIRES:
// kernels that can prefetch in several ways, which are x86's; no step is running.
WeightPrefetch measure_prefetch(CpuExec& exec, PanelKind kind);

}  // namespace pagoda::cpu
