// How fast products of one row read each kind of panels from memory, by each way of fetching ahead.
//
// A loop that only loads chooses wrongly: on Zen 3 its slowest way is one of the kernels' fastest, and
// hardware alone serves it best, which serves the kernels worst (docs/performance/log.md). So the
// kernels themselves run.
#pragma once

#include "backend/cpu/cpu_exec.h"

namespace pagoda::cpu {

// Returns the way that is clearly the fastest for such panels, or the one that the processor's family
// likes best. All threads read at once, a megabyte each that no cache has, for some ms. REQUIRES:
// kernels that are told the way, which are those of x86; no step is running.
WeightPrefetch measure_prefetch(CpuExec& exec, PanelKind kind);

}  // namespace pagoda::cpu
