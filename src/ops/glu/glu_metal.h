// Parameters of glu.metal.
#ifndef PAGODA_GLU_METAL_H
#define PAGODA_GLU_METAL_H

struct GluParameters {
  int dim;          // of a row
  int gate_stride;  // between rows
  int up_stride;
  int is_gelu;  // Activation::kGeluTanh, else kSilu
};

#endif  // PAGODA_GLU_METAL_H
