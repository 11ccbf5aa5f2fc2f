// kv_write on Apple GPUs.
#include "backend/mlx/kernel.metal.h"
#include "ops/kv_write/kv_entry.metal.h"
#include "ops/kv_write/kv_write_metal.h"

// A thread takes kWide elements of a token's key and of its value: 4 where every head begins at a
// multiple of 16 bytes, else 1.
//   k, v          [tokens, kv_heads, head_dim] at strides
//   slots         [tokens]
//   keys, values  [slots, entry_width], of type T
template <typename T, int kWide>
[[kernel]] void kv_write(device const float* k [[buffer(0)]], device const float* v [[buffer(1)]],
                         device const int* slots [[buffer(2)]], device T* keys [[buffer(3)]],
                         device T* values [[buffer(4)]],
                         constant KvWriteParameters& p [[buffer(5)]], PAGODA_THREAD) {
  const int i = ((int(group.x) * 8 + int(simd_group)) * 32 + int(lane)) * kWide;
  const size_t token = group.y;
  const int slot = slots[token];
  if (i >= p.entry_width || slot < 0 || slot >= p.num_slots) return;
  const size_t head = size_t(i / p.head_dim);
  const int place = i % p.head_dim;
  const size_t to = size_t(slot) * p.entry_width + i;
  float run[kWide];
  load_run<kWide>(k + token * p.k_token_stride + head * p.k_head_stride + place, true, run);
  store_entry<kWide>(run, keys + to);
  load_run<kWide>(v + token * p.v_token_stride + head * p.v_head_stride + place, true, run);
  store_entry<kWide>(run, values + to);
}
