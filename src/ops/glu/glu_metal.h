// Parameters of glu.metal.
#ifndef PAGODA_GLU_METAL_H
#define PAGODA_GLU_METAL_H

struct GluParameters {
  int dim;          // elements of a row
  int gate_stride;  // elements between rows
  int up_stride;
  uint activation;  // the number of an Activation
  float alpha;      // GluArgs::alpha
  float limit;      // GluArgs::limit
};

#endif  // PAGODA_GLU_METAL_H
