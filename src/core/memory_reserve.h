// Memory put aside for what must go on where the system gives no more: an answer that says so, a line
// of the log.
#pragma once

#include <cstddef>

namespace pagoda {

// Far more than an error's answer takes.
inline constexpr std::size_t kMemoryReserveBytes = 1 << 20;

// Puts them aside where they are not. From the first call on, an allocation that fails frees them and
// is tried again; only where they are gone it throws std::bad_alloc. So a large one fails and leaves
// the room to small ones behind it. Takes an atomic load where they are there. Thread-safe.
void keep_memory_reserve();

}  // namespace pagoda
