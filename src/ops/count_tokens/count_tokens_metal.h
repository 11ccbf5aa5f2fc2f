// The parameters of count_tokens.metal.
#ifndef PAGODA_COUNT_TOKENS_PARAMETERS_H
#define PAGODA_COUNT_TOKENS_PARAMETERS_H

struct CountTokensParameters {
  unsigned int vocab;
  unsigned int num_entries;
  unsigned int num_threads;  // threads of a threadgroup
};

#endif  // PAGODA_COUNT_TOKENS_PARAMETERS_H
