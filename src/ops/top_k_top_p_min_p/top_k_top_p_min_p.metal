// top_k_top_p_min_p on Apple GPUs: each threadgroup takes a row.
#include "backend/gpu/kernel.metal.h"
#include "ops/sample/logits_row.metal.h"
#include "ops/top_k_top_p_min_p/row_filters.metal.h"
#include "ops/top_k_top_p_min_p/top_k_top_p_min_p_metal.h"

// logits: [rows, vocab]; the others: [rows]. inverse_temperature: bits of float32, which may be
// subnormal
[[kernel]] [[max_total_threads_per_threadgroup(kRowThreads)]] void top_k_top_p_min_p(
    device const float* logits [[buffer(0)]], device const uint* inverse_temperature [[buffer(1)]],
    device const int* top_k [[buffer(2)]], device const float* top_p [[buffer(3)]],
    device const float* min_p_margin [[buffer(4)]], device float* least [[buffer(5)]],
    device int* num_ties [[buffer(6)]], constant TopKTopPMinPParameters& p [[buffer(7)]],
    threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  const RowPlace place = {simd_group, lane};
  const LogitsRow<float> row = {logits + size_t(group.x) * p.vocab, p.vocab, p.is_aligned != 0};
  threadgroup uint* const scratch = (threadgroup uint*)shared;
  threadgroup uint* const histogram = scratch + kRowScratchBytes / 4;
  const LargestLogit largest = largest_of(row, place, scratch);
  float last = 0.0f;
  int ties = 0;
  if (!is_fault(largest)) {
    TokenMeasure measure =
        weight_measure(weighing_of(logit_of(largest.key), inverse_temperature[group.x]));
    const RowFilter filter = {top_k[group.x], top_p[group.x], min_p_margin[group.x]};
    ties = int(filter_row(row, measure, largest, filter, place, scratch, histogram));
    if (ties == 0) {
      measure = ties_of(smallest_key(row, measure.least, place, scratch), measure);
      ties = int(sum_row(row, measure, place, scratch));
    }
    last = logit_of(measure.least);
  }
  if (simd_group == 0 && lane == 0) {
    least[group.x] = last;
    num_ties[group.x] = ties;
  }
}
