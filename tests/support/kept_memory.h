// The most freed memory that the allocator may keep, for tests of resident memory.
#pragma once

#include <cstdint>

namespace pagoda {

// The address sanitizer keeps this much in quarantine.
#ifdef __SANITIZE_ADDRESS__
inline constexpr std::int64_t kMaxKeptBytes = std::int64_t{256} << 20;
#else
inline constexpr std::int64_t kMaxKeptBytes = 0;
#endif

}  // namespace pagoda
