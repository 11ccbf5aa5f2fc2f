// Prefetches of the products, ahead of a panel that they read.
#pragma once

#include <immintrin.h>

#include "ops/linear/avx512/tile-inl.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// A panel is a stream that the hardware foresees too late, most of all where a group begins with a
// header (docs/performance/log.md has the figures). Few rows meet it once: it is fetched past the
// second and third level, which it would only fill, a tenth faster where the cores are on two
// chiplets.
constexpr int kFetchAhead = 8192;  // bytes
// Where lines are better fetched into the second level, every other one, 2 KB ahead, was best or as
// good as any for each format but those of 256 k a group, whose long headers break the stream: they
// want every line, and past the caches there too (Q6_K 56 instead of 19 GB/s, Q4_K 60 instead of
// 46).
constexpr int kSecondLevelAhead = 2048;
constexpr int kSecondLevelEvery = 2;
constexpr int kSuperAhead = 4096;
// Lines [kBegin, kEnd) of those that lie as far ahead.
template <PanelKind kKind, int kBegin, int kEnd>
PAGODA_INLINE void prefetch_ahead(const std::byte* unit, PrefetchLevel level) {
  for_all<kEnd, kBegin>([&](auto line) PAGODA_FLATTEN {
    if (level == PrefetchLevel::kSecond) {
      if constexpr (is_super(kKind)) {
        __builtin_prefetch(unit + kSuperAhead + kLineBytes * line, 0, 0);
      } else if constexpr (line % kSecondLevelEvery == 0) {
        __builtin_prefetch(unit + kSecondLevelAhead + kLineBytes * line, 0, 2);
      }
    } else {
      __builtin_prefetch(unit + kFetchAhead + kLineBytes * line, 0, 0);
    }
  });
}

// Units of a group that few rows meet, from the first on.
struct UnitsAt {
  const std::byte* group;
  int first;
  PrefetchLevel prefetch;
};

}  // namespace
}  // namespace pagoda::cpu
