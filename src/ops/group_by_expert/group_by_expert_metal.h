// Parameters of group_by_expert.metal.
#ifndef PAGODA_GROUP_BY_EXPERT_METAL_H
#define PAGODA_GROUP_BY_EXPERT_METAL_H

struct GroupParameters {
  int num_rows;
  int num_chosen;
  int num_experts;
  int block_rows;
  int most_blocks;
};

#endif  // PAGODA_GROUP_BY_EXPERT_METAL_H
