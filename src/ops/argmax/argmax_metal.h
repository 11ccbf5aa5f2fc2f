// The parameters of argmax.metal.
#ifndef PAGODA_ARGMAX_PARAMETERS_H
#define PAGODA_ARGMAX_PARAMETERS_H

struct ArgmaxParameters {
  unsigned int vocab;
  int is_aligned;  // whether four logits of a row can be read at once; vocab is a multiple of 4
};

#endif  // PAGODA_ARGMAX_PARAMETERS_H
