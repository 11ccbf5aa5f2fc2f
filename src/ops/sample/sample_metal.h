// The parameters of sample.metal.
#ifndef PAGODA_SAMPLE_PARAMETERS_H
#define PAGODA_SAMPLE_PARAMETERS_H

struct SampleParameters {
  unsigned int vocab;
  int is_aligned;  // to four logits, of which vocab is a multiple
};

#endif  // PAGODA_SAMPLE_PARAMETERS_H
