// Parameters of swiglu.metal.
#ifndef PAGODA_SWIGLU_METAL_H
#define PAGODA_SWIGLU_METAL_H

struct SwigluParameters {
  int dim;  // of a row of out
};

#endif  // PAGODA_SWIGLU_METAL_H
