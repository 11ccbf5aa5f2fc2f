// argmax: one threadgroup per row.
#include "backend/gpu/kernel.metal.h"
#include "ops/argmax/argmax_metal.h"
#include "ops/sample/logits_row.metal.h"

// logits: [rows, vocab]; out: [rows]
[[kernel]] [[max_total_threads_per_threadgroup(kRowThreads)]] void argmax(
    device const float* logits [[buffer(0)]], device int* out [[buffer(1)]],
    constant ArgmaxParameters& p [[buffer(2)]], threadgroup float* shared [[threadgroup(0)]],
    PAGODA_THREAD) {
  const RowPlace place = {simd_group, lane};
  const LogitsRow<float> row = {logits + size_t(group.x) * p.vocab, p.vocab, p.is_aligned != 0};
  const LargestLogit largest = largest_of(row, place, (threadgroup uint*)shared);
  if (simd_group == 0 && lane == 0) out[group.x] = drawn_of(largest);
}
