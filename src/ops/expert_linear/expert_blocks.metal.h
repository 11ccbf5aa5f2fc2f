// Blocks of rows of a mixture, which group_by_expert makes.
#ifndef PAGODA_EXPERT_BLOCKS_METAL_H
#define PAGODA_EXPERT_BLOCKS_METAL_H

#include "backend/gpu/kernel.metal.h"

// Some rows of an expert.
struct ExpertBlock {
  uint expert;
  uint first_row;
  uint num_rows;  // 0: the block is not used
};

// Returns a block of `blocks`, [most_blocks, 3].
inline ExpertBlock expert_block(device const int* blocks, uint index) {
  device const int* const block = blocks + 3 * size_t(index);
  ExpertBlock result;
  result.expert = uint(block[0]);
  result.first_row = uint(block[1]);
  result.num_rows = uint(block[2]);
  return result;
}

// The rows of x that a block's rows read: row i reads tokens[i].
struct TokenRows {
  device const int* tokens;
  uint count;
  uint source(uint row) const { return uint(tokens[row]); }
};

#endif  // PAGODA_EXPERT_BLOCKS_METAL_H
