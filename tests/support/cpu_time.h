// CPU time of this process: unlike clock time, it does not depend on the machine's other work.
#pragma once

#include <ctime>

namespace pagoda {

inline double process_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace pagoda
