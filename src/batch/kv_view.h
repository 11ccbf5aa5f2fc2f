// KvView: one layer's keys and values as kernels see them.
//
// One layout for all backends; an entry is written once, as its token comes, and read only as
// stored.
//
//   keys, values   [num_blocks, block_size, num_kv_heads, head_dim]
//   slot           block * block_size + offset in the block
//
// A sequence's position p lies in block block_tables[seq, p / block_size] at offset p % block_size.
// The contiguous layout is the same with one block a sequence, as long as the longest context.
#pragma once

#include "tensor/tensor.h"

namespace pagoda {

struct KvView {
  Tensor keys;    // [num_blocks, block_size, num_kv_heads, head_dim], float32, bfloat16 or float16
  Tensor values;  // the same

  std::int64_t num_blocks() const { return keys.extent(0); }
  std::int64_t block_size() const { return keys.extent(1); }
  std::int64_t num_kv_heads() const { return keys.extent(2); }
  std::int64_t head_dim() const { return keys.extent(3); }
};

}  // namespace pagoda
