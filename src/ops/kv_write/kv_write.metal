// kv_write on Apple GPUs. Kernel kv_write writes to a cache of numbers, kv_write_codes to a cache
// in which keys or values are codes.
//   k, v          [tokens, kv_heads, head_dim] at strides
//   slots         [tokens]
//   keys, values  [slots, kv_heads, elements of an entry], of types K and V
#include "backend/gpu/kernel.metal.h"
#include "ops/kv_write/kv_codes.metal.h"
#include "ops/kv_write/kv_entry.metal.h"
#include "ops/kv_write/kv_write_metal.h"

// A thread takes kWide elements of a token's key and of its value: 4 if every head begins at a
// multiple of 16 bytes, else 1.
template <typename K, typename V, int kWide>
[[kernel]] void kv_write(device const float* k [[buffer(0)]], device const float* v [[buffer(1)]],
                         device const int* slots [[buffer(2)]], device K* keys [[buffer(3)]],
                         device V* values [[buffer(4)]],
                         constant KvWriteParameters& p [[buffer(5)]], PAGODA_THREAD) {
  const int i = ((int(group.x) * 8 + int(simd_group)) * 32 + int(lane)) * kWide;
  const int entry_width = p.kv_heads * p.head_dim;
  const size_t token = group.y;
  const int slot = slots[token];
  if (i >= entry_width || slot < 0 || slot >= p.num_slots) return;
  const size_t head = size_t(i / p.head_dim);
  const int place = i % p.head_dim;
  const size_t to = size_t(slot) * entry_width + i;
  float run[kWide];
  load_run<kWide>(k + token * p.k_token_stride + head * p.k_head_stride + place, true, run);
  store_entry<kWide>(run, keys + to);
  load_run<kWide>(v + token * p.v_token_stride + head * p.v_head_stride + place, true, run);
  store_entry<kWide>(run, values + to);
}

// A SIMD group takes one head's key or value; a threadgroup has eight SIMD groups. Keys come first.
//   key_scales, value_scales  [blocks, kv_heads, num_scales, block_size]; any buffer for keys or
//                             values without scales
template <typename K, typename V, int kHeadDim>
[[kernel]] void kv_write_codes(device const float* k [[buffer(0)]],
                               device const float* v [[buffer(1)]],
                               device const int* slots [[buffer(2)]], device K* keys [[buffer(3)]],
                               device V* values [[buffer(4)]],
                               device ushort* key_scales [[buffer(5)]],
                               device ushort* value_scales [[buffer(6)]],
                               constant KvWriteParameters& p [[buffer(7)]], PAGODA_THREAD) {
  constexpr int kRegisters = KvEntry<K, kHeadDim>::kRegisters;
  const int number = int(group.x) * 8 + int(simd_group);
  const size_t token = group.y;
  const int slot = slots[token];
  if (number >= 2 * p.kv_heads || slot < 0 || slot >= p.num_slots) return;
  const bool is_value = number >= p.kv_heads;
  const int head = is_value ? number - p.kv_heads : number;
  device const float* const from = is_value ? v + token * p.v_token_stride + head * p.v_head_stride
                                            : k + token * p.k_token_stride + head * p.k_head_stride;
  float x[kRegisters];
#pragma unroll
  for (int i = 0; i < kRegisters; ++i)
    x[i] = i * 32 + int(lane) < kHeadDim ? from[i * 32 + int(lane)] : 0.0f;
  KvPlace place;
  place.slot = slot;
  place.block_size = p.block_size;
  place.kv_heads = p.kv_heads;
  place.kv_head = head;
  if (is_value) {
    write_entry<kHeadDim>(x, int(lane), place, values, value_scales);
  } else {
    write_entry<kHeadDim>(x, int(lane), place, keys, key_scales);
  }
}
