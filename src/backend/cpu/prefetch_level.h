// Levels of its caches into which a processor best fetches what it is about to read once.
#pragma once

#include <cstdint>

namespace pagoda {

enum class PrefetchLevel : std::uint8_t { kFirst, kSecond };

// Returns the cache level that attention prefetches into on this machine. kSecond on AMD's family
// 19h (Zen 3 and 4), whose first level has room for few lines under way. There attention of one row
// from memory is 1.4 to 2 times as fast as by way of the first level. Products in bfloat16 are
// faster by a fifth. kFirst elsewhere, as measured on Zen 5. Thread-safe.
PrefetchLevel prefetch_level() noexcept;

// How lines of weights that few rows meet are fetched ahead of their products.
enum class WeightPrefetch : std::uint8_t {
  kPastCaches,       // into the first level alone, which the other ones then need not hold
  kSecondLevel,      // every line
  kSecondLevelHalf,  // every other line, and less far ahead; in AVX2's products every line of codes
};

// Returns the way that reads weights fastest on this machine. kPastCaches on AMD's families from
// 1Ah on (Zen 5), kSecondLevelHalf on its family 19h (Zen 3 and 4). kSecondLevel elsewhere, as
// measured on Intel's Xeons: lines that pass the second level are fetched there by sixteen buffers
// and not by the hardware's streams. A product of one row reads 6 GB/s past the caches, 19 to 23 by
// way of the second level. Thread-safe.
WeightPrefetch weight_prefetch() noexcept;

// When a thread begins to fetch what it will read in a job to come.
enum class FetchTime : std::uint8_t {
  kOwnPartIsDone,  // of the job before
  kAllAreDone,     // with that job
};

// Returns when threads of a product of few rows best fetch the next weights on this machine.
// kAllAreDone on AMD's, where few cores read as much as a chiplet can, so that who is done takes from
// who still reads: 2 % of a decode step. kOwnPartIsDone elsewhere, as measured on Intel's Xeons,
// where sixteen threads decode a sixth faster with it. Thread-safe.
FetchTime fetch_time() noexcept;

}  // namespace pagoda
