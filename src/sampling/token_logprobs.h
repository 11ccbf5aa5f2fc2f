// Log-probabilities as they are reported: natural logarithms, of the raw logits (before bans,
// penalties and temperature).
#pragma once

#include <vector>

namespace pagoda {

struct TokenLogprob {
  int token_id = 0;
  float logprob = 0;
};

// The log-probability of one token and, if asked for, those of the likeliest tokens at its place,
// best first.
struct TokenLogprobs {
  TokenLogprob chosen;
  int rank = 0;  // 1: the likeliest
  std::vector<TokenLogprob> top;
};

}  // namespace pagoda
