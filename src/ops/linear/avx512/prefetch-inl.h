// Prefetches of the lines of a panel that products read next.
#pragma once

#include <immintrin.h>

#include "ops/linear/avx512/tile-inl.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// The hardware prefetches the stream of a panel too late, most of all if groups begin with a header
// (docs/performance/log.md has the figures). Products of few rows read a panel only once. So on Zen
// 5 it is prefetched past the second and third level, which it would only fill. That is a tenth
// faster if the cores are on two chiplets.
constexpr int kPastCachesAhead = 8192;  // bytes
// On Intel's Xeons 4 to 8 KB ahead are equally fast; 2 KB and less are slower.
constexpr int kSecondLevelAhead = 6144;
// On Zen 3 and 4, fetching every other line 2 KB ahead was best, or as good as any, for most
// formats. Formats with groups of 256 k have long headers, which break the stream. There every line
// is fetched, and into no cache beyond the first (Q6_K 56 instead of 19 GB/s, Q4_K 60 instead of
// 46).
constexpr int kHalfAhead = 2048;
constexpr int kHalfEvery = 2;
constexpr int kSuperAhead = 4096;
// Prefetches lines [kBegin, kEnd) counted from `unit`, as far ahead as the way says.
template <PanelKind kKind, int kBegin, int kEnd>
PAGODA_INLINE void prefetch_ahead(const std::byte* unit, WeightPrefetch way) {
  for_all<kEnd, kBegin>([&](auto line) PAGODA_FLATTEN {
    const std::byte* const at = unit + kLineBytes * line;
    if (way == WeightPrefetch::kSecondLevel) {
      __builtin_prefetch(at + kSecondLevelAhead, 0, 2);
    } else if (way == WeightPrefetch::kPastCaches) {
      __builtin_prefetch(at + kPastCachesAhead, 0, 0);
    } else if constexpr (is_super(kKind)) {
      __builtin_prefetch(at + kSuperAhead, 0, 0);
    } else if constexpr (line % kHalfEvery == 0) {
      __builtin_prefetch(at + kHalfAhead, 0, 2);
    }
  });
}

// The place of units in a group, for products of few rows: unit `first` and those after it.
struct UnitsAt {
  const std::byte* group;
  int first;
  WeightPrefetch prefetch;
};

}  // namespace
}  // namespace pagoda::cpu
