// The parameters of apply_penalties.metal.
#ifndef PAGODA_APPLY_PENALTIES_PARAMETERS_H
#define PAGODA_APPLY_PENALTIES_PARAMETERS_H

struct ApplyPenaltiesParameters {
  unsigned int vocab;
  unsigned int num_threads;  // threads of a threadgroup
};

#endif  // PAGODA_APPLY_PENALTIES_PARAMETERS_H
