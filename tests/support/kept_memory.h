// The memory that the allocator may keep of what was freed, for tests that look at resident memory.
#pragma once

#include <cstdint>

namespace pagoda {

// The address sanitizer puts that much in quarantine.
#ifdef __SANITIZE_ADDRESS__
inline constexpr std::int64_t kMaxKeptBytes = std::int64_t{256} << 20;
#else
inline constexpr std::int64_t kMaxKeptBytes = 0;
#endif

}  // namespace pagoda
