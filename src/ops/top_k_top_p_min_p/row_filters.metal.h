// The filters of a row (ops/top_k_top_p_min_p), which the kernels of filters and of draws share.
#ifndef PAGODA_ROW_FILTERS_METAL_H
#define PAGODA_ROW_FILTERS_METAL_H

#include "ops/sample/logits_row.metal.h"

struct RowFilter {
  int top_k;
  float top_p;
  float min_p_margin;
};

// Returns a power of e such that all tokens with a lower power weigh at most `dropped` together:
// each weighs at most dropped / 2^num_bits, and there are at most 2^num_bits.
inline float power_of_dropped(ulong dropped, uint vocab) {
  uint num_bits = 0;
  while ((1u << num_bits) < vocab) ++num_bits;
  const ulong least = dropped >> num_bits;
  if (least < 256) return -87.0f;
  // Leaves a margin of 0.02, more than all rounding errors, including that of the weight.
  return max(-87.0f, precise::log(float(least) * as_type<float>(0x2a800000u)) - 0.02f);  // 2^-42
}

// Raises measure.least to the last logit that the filters keep, or to a bound that only kept logits
// reach. Returns how many of the tokens of this key are kept, lowest ids first; 0: all of them.
inline ulong filter_row(thread const LogitsRow<float>& row, thread TokenMeasure& measure,
                        thread const LargestLogit& largest, RowFilter filter, RowPlace place,
                        threadgroup uint* scratch, threadgroup uint* histogram) {
  const float nearest = measure.weighing.max + filter.min_p_margin;
  measure.least = max(measure.least, key_of(as_type<uint>(nearest)));
  if (filter.top_k > 0 && uint(filter.top_k) < row.vocab) {
    TokenMeasure count = counting(measure);
    if (filter.top_k <= kRowThreads) count.least = max(count.least, largest.floor);
    const RowThreshold threshold =
        threshold_of(row, count, ulong(filter.top_k), place, scratch, histogram);
    if (threshold.is_reached) measure.least = threshold.key;
  }
  if (!(filter.top_p < 1.0f)) return 0;
  const ulong total = sum_row(row, measure, place, scratch);
  if (total == 0) return 0;  // all weights of a greedy row are 0
  const ulong share = share_of(total, fraction_of(filter.top_p));
  const ulong target = share > 0 ? share : 1;
  // The token that crosses p is not one of the light tokens, which together weigh no more than the
  // dropped part. They are most tokens of a row, and need not be weighed.
  TokenMeasure heavy = measure;
  heavy.weighing.least_power = power_of_dropped(total - target, row.vocab);
  const RowThreshold threshold = threshold_of(row, heavy, target, place, scratch, histogram);
  measure.least = threshold.key;
  const ulong weight = token_weight(logit_of(threshold.key), measure.weighing);
  return (threshold.left + weight - 1) / weight;
}

#endif  // PAGODA_ROW_FILTERS_METAL_H
