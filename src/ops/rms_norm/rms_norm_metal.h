// Parameters of rms_norm.metal.
#ifndef PAGODA_RMS_NORM_METAL_H
#define PAGODA_RMS_NORM_METAL_H

struct RmsNormParameters {
  int num_rows;   // tokens * heads
  int num_heads;  // rows of a token
  int dim;
  int token_stride;  // of x, in elements
  int head_stride;
  int simd_groups_per_row;
  int rows_per_group;  // of a threadgroup
  int is_aligned;      // whether every row of x begins at a multiple of 16 bytes
  float eps;
};

#endif  // PAGODA_RMS_NORM_METAL_H
