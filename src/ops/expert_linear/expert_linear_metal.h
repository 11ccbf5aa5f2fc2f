// Parameters of the sums in expert_linear.metal.
#ifndef PAGODA_EXPERT_LINEAR_METAL_H
#define PAGODA_EXPERT_LINEAR_METAL_H

struct ExpertSumParameters {
  uint num_chosen;  // rows of a token
  uint hidden;      // columns
  uint has_shared;
  uint has_shared_gate;
};

#endif  // PAGODA_EXPERT_LINEAR_METAL_H
