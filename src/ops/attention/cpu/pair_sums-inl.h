// Sums of weighted values that are stored as pairs of positions, for each target and each kind that
// multiplies pairs. All dimensions of a pair are adjacent.
#if defined(PAGODA_PAIR_SUMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_PAIR_SUMS_INL_H
#undef PAGODA_PAIR_SUMS_INL_H
#else
#define PAGODA_PAIR_SUMS_INL_H
#endif

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_kernels-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct WeighedPairs {
  const std::uint32_t* pairs;    // [count, padded_dim]
  const std::uint32_t* weights;  // [rows, kRangePositions], from the first pair's on
  int count;
  std::int64_t padded_dim;
};

// Adds the weighted pairs to kVectors vectors of each row's sums, from dimension `at` on.
template <typename Dots, int kRows, int kVectors>
HWY_INLINE void add_pair_vectors(const WeighedPairs& values, std::int64_t at, float* to,
                                 TileAhead& lines) {
  TileAhead::Cursor ahead(lines);
  SumTile<Dots, kRows, kVectors> sums;
  sums.load(to + at, values.padded_dim);
  const std::uint32_t* pairs = values.pairs + at;
  for (int i = 0; i < values.count; ++i, pairs += values.padded_dim) {
    if (fetches_at<kRows>(i)) ahead.advance();
    VWords value[kVectors];
    PAGODA_UNROLL
    for (int v = 0; v < kVectors; ++v) value[v] = hn::LoadU(DWords(), pairs + v * kLanes);
    sums.add(values.weights + i, kRangePositions, value);
  }
  sums.store(to + at, values.padded_dim);
}

// Adds the weighted pairs to sums [kRows, padded_dim].
template <typename Dots, int kRows>
HWY_INLINE void add_pairs(const WeighedPairs& values, float* sums, TileAhead& lines) {
  std::int64_t at = 0;
  for (; vectors_for(kRows) == 4 && at + 4 * kLanes <= values.padded_dim; at += 4 * kLanes)
    add_pair_vectors<Dots, kRows, 4>(values, at, sums, lines);
  for (; at < values.padded_dim; at += 2 * kLanes)
    add_pair_vectors<Dots, kRows, 2>(values, at, sums, lines);
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
