// Parameters of limits.metal.
#ifndef PAGODA_LIMITS_METAL_H
#define PAGODA_LIMITS_METAL_H

struct LimitsParameters {
  int count;  // 16 bytes each, or rounds
  int num_threads;
};

#endif  // PAGODA_LIMITS_METAL_H
