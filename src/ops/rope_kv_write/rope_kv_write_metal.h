// Parameters of rope_kv_write.metal.
#ifndef PAGODA_ROPE_KV_WRITE_METAL_H
#define PAGODA_ROPE_KV_WRITE_METAL_H

struct RopeKvWriteParameters {
  int num_heads;  // of queries
  int num_kv_heads;
  int block_size;
  int num_slots;     // of the cache; nothing is written to slots beyond
  int row_heads;     // heads of a row of joined
  int first_value;   // the first head of values in a row; of keys if values are keys
  int num_pairs;     // that are rotated
  int is_halves;     // 1: RopeStyle::kHalves; 0: kAdjacent
  int is_normed;     // 0: the norms of queries and keys are not read
  int norms_values;  // 0: the norm of values is not read
  int is_aligned;    // whether every head begins at a multiple of 16 bytes
  int has_offset;    // 0: the keys' offset is not read
  float eps;
};

#endif  // PAGODA_ROPE_KV_WRITE_METAL_H
