// The parameters of argmax.metal.
#ifndef PAGODA_ARGMAX_PARAMETERS_H
#define PAGODA_ARGMAX_PARAMETERS_H

struct ArgmaxParameters {
  unsigned int vocab;
  int is_aligned;  // to four logits, of which vocab is a multiple
};

#endif  // PAGODA_ARGMAX_PARAMETERS_H
