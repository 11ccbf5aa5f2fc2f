// Parameters of kv_write.metal.
#ifndef PAGODA_KV_WRITE_METAL_H
#define PAGODA_KV_WRITE_METAL_H

struct KvWriteParameters {
  int kv_heads;
  int head_dim;
  int block_size;
  int num_slots;       // of the cache; tokens with a slot past these are not written
  int k_token_stride;  // in elements, like all strides
  int k_head_stride;
  int v_token_stride;
  int v_head_stride;
};

#endif  // PAGODA_KV_WRITE_METAL_H
