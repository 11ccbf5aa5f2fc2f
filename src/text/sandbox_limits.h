// SandboxLimits: what one rendering of a template, or one compilation of a grammar, may take of the
// machine. One that passes a limit is stopped, and gives back what it took.
#pragma once

#include <chrono>
#include <cstdint>

namespace pagoda {

struct SandboxLimits {
  std::uint64_t num_bytes = 0;
  std::chrono::milliseconds processor_time{0};  // its thread's
};

}  // namespace pagoda
