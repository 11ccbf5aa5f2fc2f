// Parameters of resolve_tokens.metal.
#ifndef PAGODA_RESOLVE_TOKENS_METAL_H
#define PAGODA_RESOLVE_TOKENS_METAL_H

struct ResolveTokensParameters {
  int num_tokens;
};

#endif  // PAGODA_RESOLVE_TOKENS_METAL_H
