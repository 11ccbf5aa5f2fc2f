// Parameters of glu.metal.
#ifndef PAGODA_GLU_METAL_H
#define PAGODA_GLU_METAL_H

struct GluParameters {
  int dim;          // elements of a row
  int gate_stride;  // elements between rows
  int up_stride;
  int is_gelu;  // Activation::kGeluTanh, else kSilu
};

#endif  // PAGODA_GLU_METAL_H
