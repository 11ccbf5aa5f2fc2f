// Parameters of rope_kv_write.metal.
#ifndef PAGODA_ROPE_KV_WRITE_METAL_H
#define PAGODA_ROPE_KV_WRITE_METAL_H

struct RopeKvWriteParameters {
  int num_heads;  // of queries
  int num_kv_heads;
  int block_size;
  int num_slots;     // of the cache; no token writes to another one
  int row_heads;     // of a row of joined
  int first_value;   // of them; those of keys where values are keys
  int num_pairs;     // that are rotated
  int is_halves;     // RopeStyle
  int is_normed;     // else nothing is read of the norms
  int norms_values;  // else nothing is read of the values' norm
  int is_aligned;    // whether every head begins at a multiple of 16 bytes
  int has_offset;    // else nothing is read of the keys' offset
  float eps;
};

#endif  // PAGODA_ROPE_KV_WRITE_METAL_H
