// Parameters of clamp.metal.
#ifndef PAGODA_CLAMP_METAL_H
#define PAGODA_CLAMP_METAL_H

struct ClampParameters {
  int dim;         // of a row
  int row_stride;  // of x, in elements
  float limit;
};

#endif  // PAGODA_CLAMP_METAL_H
