// Parameters of kv_copy_blocks.metal.
#ifndef PAGODA_KV_COPY_BLOCKS_METAL_H
#define PAGODA_KV_COPY_BLOCKS_METAL_H

struct KvCopyBlocksParameters {
  int token_words;  // words of a token in a run
  int run_words;
  int block_words;  // words of all runs
};

#endif  // PAGODA_KV_COPY_BLOCKS_METAL_H
