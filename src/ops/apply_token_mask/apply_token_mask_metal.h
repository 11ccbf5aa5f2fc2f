// The parameters of apply_token_mask.metal.
#ifndef PAGODA_APPLY_TOKEN_MASK_PARAMETERS_H
#define PAGODA_APPLY_TOKEN_MASK_PARAMETERS_H

struct ApplyTokenMaskParameters {
  unsigned int vocab;
  unsigned int num_threads;  // threads of a threadgroup
};

#endif  // PAGODA_APPLY_TOKEN_MASK_PARAMETERS_H
