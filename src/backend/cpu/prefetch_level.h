// Cache levels into which a processor best prefetches data that it reads once.
#pragma once

#include <cstdint>

namespace pagoda {

enum class PrefetchLevel : std::uint8_t { kFirst, kSecond };

// Returns the cache level that attention prefetches into on this machine. It is kSecond on AMD's
// family 19h (Zen 3 and 4), whose first level has room for few lines in flight. There attention of
// one row from memory is 1.4 to 2 times as fast as with kFirst. Products in bfloat16 are faster by
// a fifth. It is kFirst elsewhere, as measured on Zen 5. Thread-safe.
PrefetchLevel prefetch_level() noexcept;

// How a product of few rows prefetches the lines of its weight.
enum class WeightPrefetch : std::uint8_t {
  kPastCaches,       // every line, into the first level only
  kSecondLevel,      // every line, into the second level
  kSecondLevelHalf,  // every other line, and less far ahead; in AVX2's products every line of codes
};

// Returns the way that reads weights fastest on this machine: kPastCaches on AMD's families from
// 1Ah on (Zen 5), kSecondLevelHalf on its family 19h (Zen 3 and 4), kSecondLevel elsewhere. On
// Intel's Xeons a product of one row reads 6 GB/s with kPastCaches, but 19 to 23 GB/s with
// kSecondLevel. There sixteen buffers fetch the lines that bypass the second level, and the
// hardware's prefetch streams do not help. Thread-safe.
WeightPrefetch weight_prefetch() noexcept;

// When a thread begins to prefetch the bytes that it reads in a later job.
enum class FetchTime : std::uint8_t {
  kOwnPartIsDone,  // when its own part of the current job is done
  kAllAreDone,     // when all threads are done with the current job
};

// Returns when threads of a product of few rows best prefetch the next weights on this machine. It
// is kAllAreDone on AMD's processors. There a few cores use a chiplet's whole bandwidth: threads
// that prefetch early slow those that still read, by 2 % of a decode step. It is kOwnPartIsDone
// elsewhere, as measured on Intel's Xeons: sixteen threads decode a sixth faster with it.
// Thread-safe.
FetchTime fetch_time() noexcept;

}  // namespace pagoda
