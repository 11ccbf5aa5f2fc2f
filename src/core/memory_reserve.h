// Memory held in reserve for the work that must go on if the system has no memory left: an error
// answer, a line of the log.
#pragma once

#include <cstddef>

namespace pagoda {

// Far more than an error answer needs.
inline constexpr std::size_t kMemoryReserveBytes = 1 << 20;

// Allocates the reserve if it is not there. From the first call on, an allocation that fails frees
// the reserve and is tried again. It throws std::bad_alloc only if the reserve is gone. So a large
// allocation fails, and small ones after it find room. If the reserve is there, a call costs an
// atomic load. Thread-safe.
void keep_memory_reserve();

}  // namespace pagoda
