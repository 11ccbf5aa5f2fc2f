// kv_copy_blocks on Apple GPUs.
#include "backend/gpu/kernel.metal.h"
#include "ops/kv_copy_blocks/kv_copy_blocks_metal.h"

// A thread copies one word of a block: 16 bytes if a token's bytes are a multiple of that, else one
// element. A block consists of runs, which have its tokens' words in order. An array of elements
// has one run per block, an array of scales one for each head and scale. No source is written, and
// no destination is read.
//   copies  [copies, 3]: source, destination, tokens
//   array   [blocks, runs, run_words]
template <typename Word>
[[kernel]] void kv_copy_blocks(device const int* copies [[buffer(0)]],
                               device Word* array [[buffer(1)]],
                               constant KvCopyBlocksParameters& p [[buffer(2)]], PAGODA_THREAD) {
  const int word = (int(group.x) * 8 + int(simd_group)) * 32 + int(lane);
  device const int* const copy = copies + 3 * size_t(group.y);
  if (word >= p.block_words || word % p.run_words >= copy[2] * p.token_words) return;
  array[size_t(copy[1]) * p.block_words + word] = array[size_t(copy[0]) * p.block_words + word];
}
