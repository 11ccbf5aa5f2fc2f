// rope_kv_write on Apple GPUs.
#include "backend/mlx/kernel.metal.h"
#include "ops/rope/rope_head.metal.h"
#include "ops/rope_kv_write/rope_kv_write_metal.h"

// A SIMD group a head of queries, keys or values, eight a threadgroup.
//   joined          [tokens, heads + 2 * kv_heads, kHeadDim]
//   angles          [tokens, 2, kHeadDim / 2]
//   slots           [tokens]
//   q_norm, k_norm  [kHeadDim], where is_normed
//   q               [tokens, heads, kHeadDim]
//   keys, values    [slots, kv_heads, kHeadDim], of type T
template <typename T, int kHeadDim>
[[kernel]] void rope_kv_write(device const float* joined [[buffer(0)]],
                              device const float* angles [[buffer(1)]],
                              device const int* slots [[buffer(2)]],
                              device const float* q_norm [[buffer(3)]],
                              device const float* k_norm [[buffer(4)]],
                              device float* q [[buffer(5)]], device T* keys [[buffer(6)]],
                              device T* values [[buffer(7)]],
                              constant RopeKvWriteParameters& p [[buffer(8)]], PAGODA_THREAD) {
  const int head = int(group.x) * 8 + int(simd_group);
  const int all_heads = p.num_heads + 2 * p.num_kv_heads;
  const size_t token = group.y;
  const bool is_query = head < p.num_heads;
  const bool is_value = head >= p.num_heads + p.num_kv_heads;
  const bool is_halves = p.is_halves != 0;
  const int slot = slots[token];
  const bool is_stored = slot >= 0 && slot < p.num_slots;
  if (head >= all_heads || !(is_query || is_stored)) return;

  float a[HeadSplit<kHeadDim>::kShare];
  float b[HeadSplit<kHeadDim>::kShare];
  load_head<kHeadDim>(joined + (token * all_heads + head) * kHeadDim, is_halves, p.is_aligned != 0,
                      int(lane), a, b);
  if (!is_value) {
    if (p.is_normed != 0) {
      device const float* const norm = is_query ? q_norm : k_norm;
      norm_head<kHeadDim>(norm, p.eps, is_halves, int(lane), a, b);
    }
    turn_head<kHeadDim>(angles + token * kHeadDim, int(lane), a, b);
  }
  if (is_query) {
    store_head<kHeadDim>(a, b, is_halves, int(lane), q + (token * p.num_heads + head) * kHeadDim);
    return;
  }
  const int kv_head = (head - p.num_heads) % p.num_kv_heads;
  device T* const cache = is_value ? values : keys;
  store_head<kHeadDim>(a, b, is_halves, int(lane),
                       cache + (size_t(slot) * p.num_kv_heads + kv_head) * kHeadDim);
}
