// sample on Apple GPUs: each threadgroup filters a row and draws from it.
#include "backend/gpu/kernel.metal.h"
#include "ops/sample/logits_row.metal.h"
#include "ops/sample/sample_metal.h"
#include "ops/top_k_top_p_min_p/row_filters.metal.h"

inline bool is_greedy(uint inverse_temperature) {
  return inverse_temperature == 0x7f800000u;
}

// Returns the id that `uniform`, two halves of 31 bits, draws among the tokens of the measure.
inline int draw(thread const LogitsRow<float>& row, thread const TokenMeasure& measure,
                device const int* uniform, RowPlace place, threadgroup uint* scratch) {
  const ulong fraction = (ulong(uniform[0]) << 31) + ulong(uniform[1]);
  return int(first_beyond(row, measure, fraction, /*is_share=*/true, place, scratch));
}

// logits: [rows, vocab]; uniforms: [rows, 2]; the others: [rows]. inverse_temperature: bits of
// float32, which may be subnormal
[[kernel]] [[max_total_threads_per_threadgroup(kRowThreads)]] void sample(
    device const float* logits [[buffer(0)]], device const uint* inverse_temperature [[buffer(1)]],
    device const int* uniforms [[buffer(2)]], device int* out [[buffer(3)]],
    constant SampleParameters& p [[buffer(4)]], threadgroup float* shared [[threadgroup(0)]],
    PAGODA_THREAD) {
  const RowPlace place = {simd_group, lane};
  const LogitsRow<float> row = {logits + size_t(group.x) * p.vocab, p.vocab, p.is_aligned != 0};
  threadgroup uint* const scratch = (threadgroup uint*)shared;
  const LargestLogit largest = largest_of(row, place, scratch);
  int id = drawn_of(largest);
  if (!is_fault(largest) && !is_greedy(inverse_temperature[group.x])) {
    const TokenMeasure measure =
        weight_measure(weighing_of(logit_of(largest.key), inverse_temperature[group.x]));
    id = draw(row, measure, uniforms + 2 * group.x, place, scratch);
  }
  if (simd_group == 0 && lane == 0) out[group.x] = id;
}

[[kernel]] [[max_total_threads_per_threadgroup(kRowThreads)]] void sample_filtered(
    device const float* logits [[buffer(0)]], device const uint* inverse_temperature [[buffer(1)]],
    device const int* uniforms [[buffer(2)]], device const int* top_k [[buffer(3)]],
    device const float* top_p [[buffer(4)]], device const float* min_p_margin [[buffer(5)]],
    device int* out [[buffer(6)]], constant SampleParameters& p [[buffer(7)]],
    threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  const RowPlace place = {simd_group, lane};
  const LogitsRow<float> row = {logits + size_t(group.x) * p.vocab, p.vocab, p.is_aligned != 0};
  threadgroup uint* const scratch = (threadgroup uint*)shared;
  threadgroup uint* const histogram = scratch + kRowScratchBytes / 4;
  const LargestLogit largest = largest_of(row, place, scratch);
  int id = drawn_of(largest);
  if (!is_fault(largest) && !is_greedy(inverse_temperature[group.x])) {
    TokenMeasure measure =
        weight_measure(weighing_of(logit_of(largest.key), inverse_temperature[group.x]));
    const RowFilter filter = {top_k[group.x], top_p[group.x], min_p_margin[group.x]};
    const ulong num_ties = filter_row(row, measure, largest, filter, place, scratch, histogram);
    if (num_ties > 0) {
      measure.last_tie = first_beyond(row, ties_of(measure.least, measure), num_ties - 1,
                                      /*is_share=*/false, place, scratch);
    }
    id = draw(row, measure, uniforms + 2 * group.x, place, scratch);
  }
  if (simd_group == 0 && lane == 0) out[group.x] = id;
}
