// Parameters of kv_copy_blocks.metal.
#ifndef PAGODA_KV_COPY_BLOCKS_METAL_H
#define PAGODA_KV_COPY_BLOCKS_METAL_H

struct KvCopyBlocksParameters {
  int entry_words;
  int block_words;
};

#endif  // PAGODA_KV_COPY_BLOCKS_METAL_H
