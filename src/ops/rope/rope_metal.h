// Parameters of rope.metal.
#ifndef PAGODA_ROPE_METAL_H
#define PAGODA_ROPE_METAL_H

struct RopeAnglesParameters {
  int num_tokens;
  int num_pairs;  // of a head
  float factor;   // as in RopeAnglesArgs, like the two below
  float growth;
  int growth_positions;
};

struct RopeParameters {
  int num_heads;
  int token_stride;  // of x, in elements
  int head_stride;
  int num_pairs;   // that are rotated
  int is_halves;   // 1: RopeStyle::kHalves; 0: kAdjacent
  int is_aligned;  // whether every head of x begins at a multiple of 16 bytes
};

#endif  // PAGODA_ROPE_METAL_H
