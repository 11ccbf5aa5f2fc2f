// The parameters of apply_logit_bias.metal.
#ifndef PAGODA_APPLY_LOGIT_BIAS_PARAMETERS_H
#define PAGODA_APPLY_LOGIT_BIAS_PARAMETERS_H

struct ApplyLogitBiasParameters {
  unsigned int vocab;
  unsigned int slice;  // logits of a row that a threadgroup processes, a multiple of 32
  unsigned int num_entries;
  unsigned int num_threads;  // threads of a threadgroup
};

#endif  // PAGODA_APPLY_LOGIT_BIAS_PARAMETERS_H
