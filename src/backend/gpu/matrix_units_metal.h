#ifndef PAGODA_MATRIX_UNITS_METAL_H
#define PAGODA_MATRIX_UNITS_METAL_H

struct MatrixUnitsParameters {
  uint num_elements;  // per matrix: 64
};

#endif  // PAGODA_MATRIX_UNITS_METAL_H
