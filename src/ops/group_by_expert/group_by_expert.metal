// group_by_expert on Apple GPUs: one threadgroup, and a thread for each expert. A thread passes over
// all pairs of a token and an expert twice: it counts its own, and then numbers them.
#include "backend/gpu/kernel.metal.h"
#include "ops/group_by_expert/group_by_expert_metal.h"

// Returns the sum of `values` of the threads before this one. shared [32]
inline int sum_before(int value, threadgroup int* shared, uint simd_group, uint lane) {
  const int before = simd_prefix_exclusive_sum(value);
  if (lane == 31) shared[simd_group] = before + value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  int sum = before;
  for (uint i = 0; i < simd_group; ++i) sum += shared[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return sum;
}

// experts [rows]: the expert of each pair; tokens [rows], places [rows], blocks [most_blocks, 3]
[[kernel]] void group_by_expert(device const int* experts [[buffer(0)]],
                                device int* tokens [[buffer(1)]], device int* places [[buffer(2)]],
                                device int* blocks [[buffer(3)]],
                                constant GroupParameters& p [[buffer(4)]],
                                threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  const int expert = 32 * int(simd_group) + int(lane);
  int count = 0;
  for (int pair = 0; pair < p.num_rows; ++pair) count += experts[pair] == expert ? 1 : 0;
  threadgroup int* const sums = (threadgroup int*)shared;
  const int first_row = sum_before(count, sums, simd_group, lane);
  const int num_blocks = (count + p.block_rows - 1) / p.block_rows;
  const int first_block = sum_before(num_blocks, sums, simd_group, lane);
  for (int i = 0; i < num_blocks; ++i) {
    device int* const block = blocks + 3 * (first_block + i);
    block[0] = expert;
    block[1] = first_row + i * p.block_rows;
    block[2] = min(count - i * p.block_rows, p.block_rows);
  }
  // The thread of the last expert clears the blocks that no expert has.
  if (expert == p.num_experts - 1) {
    for (int i = 3 * (first_block + num_blocks); i < 3 * p.most_blocks; ++i) blocks[i] = 0;
  }
  int row = first_row;
  for (int pair = 0; pair < p.num_rows; ++pair) {
    if (experts[pair] == expert) {
      tokens[row] = pair / p.num_chosen;
      places[pair] = row;
      ++row;
    }
  }
}
