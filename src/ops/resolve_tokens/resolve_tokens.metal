// resolve_tokens on Apple GPUs.
#include "backend/gpu/kernel.metal.h"
#include "ops/resolve_tokens/resolve_tokens_metal.h"

// Each thread takes a token. token_ids, token_source, out [tokens]; drawn [rows]
[[kernel]] void resolve_tokens(device const int* token_ids [[buffer(0)]],
                               device const int* token_source [[buffer(1)]],
                               device const int* drawn [[buffer(2)]], device int* out [[buffer(3)]],
                               constant ResolveTokensParameters& p [[buffer(4)]], PAGODA_THREAD) {
  const int token = (int(group.x) * 8 + int(simd_group)) * 32 + int(lane);
  if (token >= p.num_tokens) return;
  const int source = token_source[token];
  out[token] = source < 0 ? token_ids[token] : max(drawn[source], 0);
}
