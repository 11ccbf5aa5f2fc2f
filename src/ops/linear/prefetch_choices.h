// How products fetch weights ahead on this machine, as it was measured once, and noted in a file.
//
// The file has a line for each processor, instruction set, number of threads and kind of panels that
// was met. It is made again where it is missing or not understood; where it can't be written, the
// next process measures again. No result depends on it.
#pragma once

#include <filesystem>

#include "backend/cpu/cpu_exec.h"

namespace pagoda::cpu {

// Sets the way for each kind of panels that `exec`'s weights have: the one in `file`, or one that is
// measured now (prefetch_probe.h) and noted there.
void choose_prefetch(CpuExec& exec, const std::filesystem::path& file);

}  // namespace pagoda::cpu
