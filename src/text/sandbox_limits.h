// SandboxLimits: the memory and time that one rendering of a template, or one compilation of a
// grammar, may use. A job that exceeds a limit is stopped, and its memory is freed.
#pragma once

#include <chrono>
#include <cstdint>

namespace pagoda {

struct SandboxLimits {
  std::uint64_t num_bytes = 0;
  std::chrono::milliseconds processor_time{0};  // CPU time of the job's thread
};

}  // namespace pagoda
