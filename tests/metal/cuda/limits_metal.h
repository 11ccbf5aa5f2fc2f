// Parameters of limits.metal.
#ifndef PAGODA_LIMITS_METAL_H
#define PAGODA_LIMITS_METAL_H

struct LimitsParameters {
  int count;  // vectors of 16 bytes, or rounds
  int num_threads;
};

#endif  // PAGODA_LIMITS_METAL_H
