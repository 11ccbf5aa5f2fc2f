// Merges softmaxes of ranges; compiled for each target.
#if defined(PAGODA_SOFTMAX_MERGE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_SOFTMAX_MERGE_INL_H
#undef PAGODA_SOFTMAX_MERGE_INL_H
#else
#define PAGODA_SOFTMAX_MERGE_INL_H
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_kernels-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Merges `count` rows, at most kMaxRows, of a range's softmax into the merged softmax of the ranges
// before it. A row that sees nothing of the range is not changed.
HWY_INLINE void merge_rows(const Softmax& range, const Softmax& merged, int row, int count,
                           std::int64_t padded_dim) {
  const D d;
  HWY_ALIGN float kept[16], added[16], largest[16] = {}, totals[16] = {};
  HWY_ALIGN float old_largest[16] = {}, old_totals[16] = {};
  std::copy_n(range.largest + row, count, largest);
  std::copy_n(range.totals + row, count, totals);
  std::copy_n(merged.largest + row, count, old_largest);
  std::copy_n(merged.totals + row, count, old_totals);
  for (int i = 0; i < count; i += kLanes) {
    const V total = hn::Load(d, totals + i), old_total = hn::Load(d, old_totals + i);
    const V own = hn::Load(d, largest + i), old = hn::Load(d, old_largest + i);
    const auto is_empty = hn::Eq(total, hn::Zero(d));
    const V most = hn::Max(own, old);
    const V keep = hn::IfThenElse(is_empty, hn::Set(d, 1.0f), exp2_of(hn::Sub(old, most)));
    const V add = hn::IfThenZeroElse(is_empty, exp2_of(hn::Sub(own, most)));
    hn::Store(keep, d, kept + i);
    hn::Store(add, d, added + i);
    hn::Store(most, d, largest + i);
    hn::Store(hn::MulAdd(total, add, hn::Mul(old_total, keep)), d, totals + i);
  }
  std::copy_n(largest, count, merged.largest + row);
  std::copy_n(totals, count, merged.totals + row);
  const float* from = range.sums + row * padded_dim;
  float* to = merged.sums + row * padded_dim;
  for (int r = 0; r < count; ++r, from += padded_dim, to += padded_dim) {
    const V keep = hn::Set(d, kept[r]), add = hn::Set(d, added[r]);
    for (std::int64_t i = 0; i < padded_dim; i += kLanes) {
      const V old = hn::Mul(hn::LoadU(d, to + i), keep);
      hn::StoreU(hn::MulAdd(hn::LoadU(d, from + i), add, old), d, to + i);
    }
  }
}

// Does the same for all rows.
inline void merge_softmax(const Softmax& range, const Softmax& merged, int rows,
                          std::int64_t padded_dim) {
  for (int row = 0; row < rows; row += kMaxRows) {
    merge_rows(range, merged, row, std::min(kMaxRows, rows - row), padded_dim);
  }
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
