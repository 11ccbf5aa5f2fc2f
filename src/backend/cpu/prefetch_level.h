// Into which level of its caches a processor best fetches what it is about to read once.
#pragma once

#include <cstdint>

namespace pagoda {

enum class PrefetchLevel : std::uint8_t { kFirst, kSecond };

// Returns the cache level that attention prefetches into on this machine. kSecond on AMD's family
// 19h (Zen 3 and 4), whose first level has room for few lines under way: attention of one row from
// memory is there 1.4 to 2 times as fast as by way of the first level, products in bfloat16 a
// fifth. kFirst elsewhere, as measured on Zen 5. Thread-safe.
PrefetchLevel prefetch_level() noexcept;

}  // namespace pagoda
