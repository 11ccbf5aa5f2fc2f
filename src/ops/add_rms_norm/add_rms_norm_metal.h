// Parameters of add_rms_norm.metal.
#ifndef PAGODA_ADD_RMS_NORM_METAL_H
#define PAGODA_ADD_RMS_NORM_METAL_H

struct AddRmsNormParameters {
  int num_rows;
  int dim;
  int simd_groups_per_row;
  int rows_per_group;  // rows of a threadgroup
  int is_aligned;      // whether every row of x and delta begins at a multiple of 16 bytes
  int is_normed;       // 0: only the sum is written
  int norms_delta;     // whether delta is normed before it is added
  float delta_factor;
  float sum_factor;
  float eps;
};

#endif  // PAGODA_ADD_RMS_NORM_METAL_H
