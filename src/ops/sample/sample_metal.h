// The parameters of sample.metal.
#ifndef PAGODA_SAMPLE_PARAMETERS_H
#define PAGODA_SAMPLE_PARAMETERS_H

struct SampleParameters {
  unsigned int vocab;
  int is_aligned;  // whether each row begins at a multiple of four logits
};

#endif  // PAGODA_SAMPLE_PARAMETERS_H
