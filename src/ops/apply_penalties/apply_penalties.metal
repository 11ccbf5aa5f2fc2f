// apply_penalties: one thread per logit, rows along y.
#include "backend/gpu/kernel.metal.h"
#include "ops/apply_penalties/apply_penalties_metal.h"

// logits, out: [rows, vocab]; counts: [histograms, vocab]; the others: [rows]
template <typename T>
[[kernel]] void apply_penalties(device const T* logits [[buffer(0)]],
                                device const int* counts [[buffer(1)]],
                                device const int* histogram_of [[buffer(2)]],
                                device const float* repetition [[buffer(3)]],
                                device const float* frequency [[buffer(4)]],
                                device const float* presence [[buffer(5)]],
                                device T* out [[buffer(6)]],
                                constant ApplyPenaltiesParameters& p [[buffer(7)]], PAGODA_THREAD) {
  const uint token = group.x * p.num_threads + thread_id;
  if (token >= p.vocab) return;
  const uint row = group.y;
  const size_t at = size_t(row) * p.vocab + token;
  const int histogram = histogram_of[row];
  const int count = histogram < 0 ? 0 : counts[size_t(histogram) * p.vocab + token];
  if (count == 0) {
    out[at] = logits[at];
    return;
  }
  float x = float(logits[at]);
  x = x > 0.0f ? x / repetition[row] : x * repetition[row];
  if (count > 1) {
    const float of_times = frequency[row] * float(count - 1);
    x = x - of_times;
    x = x - presence[row];
  }
  out[at] = T(x);
}
