// rope_kv_write on Apple GPUs.
#include "backend/gpu/kernel.metal.h"
#include "ops/kv_write/kv_codes.metal.h"
#include "ops/rope/rope_head.metal.h"
#include "ops/rope_kv_write/rope_kv_write_metal.h"

// A head of queries, keys or values. Each SIMD group takes one, and each threadgroup eight.
struct JoinedHead {
  int number;
  bool is_query;
  bool is_value;
  bool is_wanted;  // false: nothing is written
  KvPlace place;   // of a key or a value
};

inline JoinedHead joined_head(int number, int slot, constant RopeKvWriteParameters& p) {
  JoinedHead head;
  head.number = number;
  head.is_query = number < p.num_heads;
  head.is_value = number >= p.num_heads + p.num_kv_heads;
  const bool is_stored = slot >= 0 && slot < p.num_slots;
  head.is_wanted = number < p.num_heads + 2 * p.num_kv_heads && (head.is_query || is_stored);
  head.place.slot = slot;
  head.place.block_size = p.block_size;
  head.place.kv_heads = p.num_kv_heads;
  head.place.kv_head = (number - p.num_heads) % p.num_kv_heads;
  return head;
}

// Reads a head, norms it, and rotates it unless it is a value.
template <int kHeadDim>
inline void load_rotated(JoinedHead head, size_t token, int lane, device const float* joined,
                         device const float* angles, device const float* q_norm,
                         device const float* k_norm, device const float* v_norm,
                         device const float* query_angles, constant RopeKvWriteParameters& p,
                         thread float* a, thread float* b) {
  const HeadPairs pairs = head_pairs(p.is_halves, p.num_pairs);
  const int place = head.is_value ? p.first_value + head.place.kv_head : head.number;
  load_head<kHeadDim>(joined + (token * p.row_heads + place) * kHeadDim, pairs, p.is_aligned != 0,
                      lane, a, b);
  if (head.is_value) {
    if (p.norms_values != 0) norm_head<kHeadDim>(v_norm, p.eps, pairs, lane, a, b);
    return;
  }
  if (p.is_normed != 0) {
    device const float* const norm = head.is_query ? q_norm : k_norm;
    norm_head<kHeadDim>(norm, p.eps, pairs, lane, a, b);
  }
  device const float* const own_angles = head.is_query ? query_angles : angles;
  rotate_head<kHeadDim>(own_angles + token * 2 * p.num_pairs, pairs, lane, a, b);
}

// Writes a head to threadgroup memory, [kHeadDim], for all lanes of its SIMD group.
template <int kHeadDim>
inline void exchange_head(thread const float* a, thread const float* b, HeadPairs pairs, int lane,
                          threadgroup float* exchange) {
  constexpr int kRun = HeadSplit<kHeadDim>::kRun;
#pragma unroll
  for (int run = 0; run < HeadSplit<kHeadDim>::kRuns; ++run) {
    const int pair = first_pair<kHeadDim>(run, lane);
    for (int i = 0; pair < kHeadDim / 2 && i < kRun; ++i) {
      const int place_a = pairs.is_halves ? place_of_a<kHeadDim>(pairs, pair) + i : 2 * (pair + i);
      const int place_b =
          pairs.is_halves ? place_of_b<kHeadDim>(pairs, pair) + i : 2 * (pair + i) + 1;
      exchange[place_a] = a[run * kRun + i];
      exchange[place_b] = b[run * kRun + i];
    }
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
}

//   joined          [tokens, row_heads, kHeadDim]
//   angles          [tokens, 2, num_pairs], of keys; query_angles likewise
//   slots           [tokens]
//   q_norm, k_norm  [kHeadDim], if is_normed; v_norm likewise, if norms_values
//   q               [tokens, heads, kHeadDim]
//   keys, values    [slots, kv_heads, kHeadDim], of types K and V
template <typename K, typename V, int kHeadDim>
[[kernel]] void rope_kv_write(
    device const float* joined [[buffer(0)]], device const float* angles [[buffer(1)]],
    device const int* slots [[buffer(2)]], device const float* q_norm [[buffer(3)]],
    device const float* k_norm [[buffer(4)]], device const float* v_norm [[buffer(5)]],
    device const float* query_angles [[buffer(6)]], device float* q [[buffer(7)]],
    device K* keys [[buffer(8)]], device V* values [[buffer(9)]],
    constant RopeKvWriteParameters& p [[buffer(10)]], PAGODA_THREAD) {
  const size_t token = group.y;
  const JoinedHead head = joined_head(int(group.x) * 8 + int(simd_group), slots[token], p);
  if (!head.is_wanted) return;
  float a[HeadSplit<kHeadDim>::kShare];
  float b[HeadSplit<kHeadDim>::kShare];
  load_rotated<kHeadDim>(head, token, int(lane), joined, angles, q_norm, k_norm, v_norm,
                         query_angles, p, a, b);
  const HeadPairs pairs = head_pairs(p.is_halves, p.num_pairs);
  if (head.is_query) {
    store_head<kHeadDim>(a, b, pairs, int(lane),
                         q + (token * p.num_heads + head.number) * kHeadDim);
    return;
  }
  const size_t entry = entry_number(head.place) * kHeadDim;
  if (head.is_value) {
    store_head<kHeadDim>(a, b, pairs, int(lane), values + entry);
  } else {
    store_head<kHeadDim>(a, b, pairs, int(lane), keys + entry);
  }
}

// Does the same if keys or values are stored as codes.
//   keys, values              [slots, kv_heads, elements of an entry]
//   key_scales, value_scales  [blocks, kv_heads, num_scales, block_size], or anything if there are
//                             no scales
//   key_offset                [kv_heads, kHeadDim], if has_offset: subtracted from keys
//   shared                    [8, kHeadDim]
template <typename K, typename V, int kHeadDim>
[[kernel]] void rope_kv_write_codes(
    device const float* joined [[buffer(0)]], device const float* angles [[buffer(1)]],
    device const int* slots [[buffer(2)]], device const float* q_norm [[buffer(3)]],
    device const float* k_norm [[buffer(4)]], device const float* v_norm [[buffer(5)]],
    device const float* query_angles [[buffer(6)]], device float* q [[buffer(7)]],
    device K* keys [[buffer(8)]], device V* values [[buffer(9)]],
    device ushort* key_scales [[buffer(10)]], device ushort* value_scales [[buffer(11)]],
    device const float* key_offset [[buffer(12)]], constant RopeKvWriteParameters& p [[buffer(13)]],
    threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  const size_t token = group.y;
  const JoinedHead head = joined_head(int(group.x) * 8 + int(simd_group), slots[token], p);
  if (!head.is_wanted) return;
  float a[HeadSplit<kHeadDim>::kShare];
  float b[HeadSplit<kHeadDim>::kShare];
  load_rotated<kHeadDim>(head, token, int(lane), joined, angles, q_norm, k_norm, v_norm,
                         query_angles, p, a, b);
  const HeadPairs pairs = head_pairs(p.is_halves, p.num_pairs);
  if (head.is_query) {
    store_head<kHeadDim>(a, b, pairs, int(lane),
                         q + (token * p.num_heads + head.number) * kHeadDim);
    return;
  }
  // Each lane gets the dimensions that write_entry() expects it to hold.
  threadgroup float* const exchange = shared + int(simd_group) * kHeadDim;
  exchange_head<kHeadDim>(a, b, pairs, int(lane), exchange);
  float x[KvEntry<K, kHeadDim>::kRegisters];
#pragma unroll
  for (int i = 0; i < KvEntry<K, kHeadDim>::kRegisters; ++i)
    x[i] = i * 32 + int(lane) < kHeadDim ? exchange[i * 32 + int(lane)] : 0.0f;
  if (head.is_value) {
    write_entry<kHeadDim>(x, int(lane), head.place, values, value_scales);
  } else {
    device const float* const offset = key_offset + head.place.kv_head * kHeadDim;
#pragma unroll
    for (int i = 0; i < KvEntry<K, kHeadDim>::kRegisters; ++i) {
      if (p.has_offset != 0 && i * 32 + int(lane) < kHeadDim) x[i] -= offset[i * 32 + int(lane)];
    }
    write_entry<kHeadDim>(x, int(lane), head.place, keys, key_scales);
  }
}
