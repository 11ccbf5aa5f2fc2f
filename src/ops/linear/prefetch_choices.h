// The choice of how products prefetch weights on this machine, measured once and noted in a file.
//
// The file has a line for each processor, instruction set, number of threads and kind of panels
// that was measured. It is made again if it is missing or not understood. If it can't be written,
// the next process measures again. No product's result depends on the choice.
#pragma once

#include <filesystem>

#include "backend/cpu/cpu_exec.h"

namespace pagoda::cpu {

// Sets the way to prefetch for each kind of panels that `exec`'s weights have. The way is read from
// `file`, or else measured (prefetch_probe.h) and noted there.
void choose_prefetch(CpuExec& exec, const std::filesystem::path& file);

}  // namespace pagoda::cpu
