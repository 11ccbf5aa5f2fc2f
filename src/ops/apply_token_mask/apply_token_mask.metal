// apply_token_mask: one thread per logit, rows along y.
#include "backend/gpu/kernel.metal.h"
#include "ops/apply_token_mask/apply_token_mask_metal.h"

// logits, out: [rows, vocab]; words: [masks, (vocab + 31) / 32]; mask_of: [rows]
template <typename T>
[[kernel]] void apply_token_mask(device const T* logits [[buffer(0)]],
                                 device const uint* words [[buffer(1)]],
                                 device const int* mask_of [[buffer(2)]],
                                 device T* out [[buffer(3)]],
                                 constant ApplyTokenMaskParameters& p [[buffer(4)]],
                                 PAGODA_THREAD) {
  const uint token = group.x * p.num_threads + thread_id;
  if (token >= p.vocab) return;
  const int mask = mask_of[group.y];
  const size_t at = size_t(group.y) * p.vocab + token;
  const size_t num_words = (p.vocab + 31) / 32;
  const bool is_allowed =
      mask < 0 || ((words[size_t(mask) * num_words + token / 32] >> (token % 32)) & 1) != 0;
  out[at] = is_allowed ? logits[at] : T(-INFINITY);
}
