// Parameters of rms_norm_rope.metal.
#ifndef PAGODA_RMS_NORM_ROPE_METAL_H
#define PAGODA_RMS_NORM_ROPE_METAL_H

struct RmsNormRopeParameters {
  int num_heads;
  int token_stride;  // of x, in elements
  int head_stride;
  int num_pairs;   // that are rotated
  int is_halves;   // 1: RopeStyle::kHalves; 0: kAdjacent
  int is_aligned;  // whether every head of x begins at a multiple of 16 bytes
  float eps;
};

#endif  // PAGODA_RMS_NORM_ROPE_METAL_H
