// Parameters of soft_cap.metal.
#ifndef PAGODA_SOFT_CAP_METAL_H
#define PAGODA_SOFT_CAP_METAL_H

struct SoftCapParameters {
  int dim;  // of a row
  float cap;
};

#endif  // PAGODA_SOFT_CAP_METAL_H
