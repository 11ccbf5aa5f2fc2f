// kv_copy_blocks on Apple GPUs.
#include "backend/mlx/kernel.metal.h"
#include "ops/kv_copy_blocks/kv_copy_blocks_metal.h"

// A thread takes a word of a block, of keys and of values: 16 bytes where entries are whole words of
// that size. The sources are not written, nor are the destinations read.
//   copies        [copies, 3]: source, destination, tokens
//   keys, values  [blocks, block_words]
template <typename Word>
[[kernel]] void kv_copy_blocks(device const int* copies [[buffer(0)]],
                               device Word* keys [[buffer(1)]], device Word* values [[buffer(2)]],
                               constant KvCopyBlocksParameters& p [[buffer(3)]], PAGODA_THREAD) {
  const int word = (int(group.x) * 8 + int(simd_group)) * 32 + int(lane);
  device const int* const copy = copies + 3 * size_t(group.y);
  if (word >= copy[2] * p.entry_words) return;
  const size_t from = size_t(copy[0]) * p.block_words + word;
  const size_t to = size_t(copy[1]) * p.block_words + word;
  keys[to] = keys[from];
  values[to] = values[from];
}
