// count_tokens: count_tokens_clear clears histograms, with one thread per count and histograms
// along y. Then count_tokens counts, with one thread per entry. Entries are distinct, so no two
// threads write the same count.
#include "backend/gpu/kernel.metal.h"
#include "ops/count_tokens/count_tokens_metal.h"

// cleared: [histograms to clear]; counts: [histograms, vocab]
[[kernel]] void count_tokens_clear(device const int* cleared [[buffer(0)]],
                                   device int* counts [[buffer(1)]],
                                   constant CountTokensParameters& p [[buffer(2)]], PAGODA_THREAD) {
  const uint token = group.x * p.num_threads + thread_id;
  if (token < p.vocab) counts[size_t(cleared[group.y]) * p.vocab + token] = 0;
}

// histograms, token_ids, times: [entries]; counts: [histograms, vocab]
[[kernel]] void count_tokens(device const int* histograms [[buffer(0)]],
                             device const int* token_ids [[buffer(1)]],
                             device const int* times [[buffer(2)]],
                             device int* counts [[buffer(3)]],
                             constant CountTokensParameters& p [[buffer(4)]], PAGODA_THREAD) {
  const uint i = group.x * p.num_threads + thread_id;
  if (i >= p.num_entries) return;
  const int histogram = histograms[i];
  const int token_id = token_ids[i];
  if (histogram < 0 || token_id < 0) return;
  const size_t at = size_t(histogram) * p.vocab + size_t(token_id);
  const int count = max(counts[at], 1) + times[i];
  counts[at] = times[i] < 0 && count <= 1 ? 0 : count;
}
