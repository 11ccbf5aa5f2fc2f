// attention_decode: a SIMD group's work on one tile of keys, and how a threadgroup finds its query.
#ifndef PAGODA_ATTENTION_DECODE_METAL_H
#define PAGODA_ATTENTION_DECODE_METAL_H

#include "ops/attention/attention_arithmetic.metal.h"
#include "ops/attention/attention_metal.h"

// Returns the query of a row. Rows are the decodes, then the tokens of short parts. The query of a
// decode is found with loads that do not wait for one another.
inline AttentionQuery find_decode(int row, device const int* query_start,
                                  device const int* context_lens, device const int* slot_mapping,
                                  constant AttentionParameters& p) {
  AttentionQuery query;
  query.seq = row;
  query.token = row;
  int behind = 0;  // tokens of the part from this one on
  if (row < p.num_decodes) {
    behind = 1;
  } else {
    int place = row - p.num_decodes;
    query.seq = p.num_decodes;
#pragma unroll 1
    for (; query.seq < p.num_seqs - 1; ++query.seq) {
      const int tokens = query_start[query.seq + 1] - query_start[query.seq];
      if (tokens > kAttentionShortPart) continue;
      if (place < tokens) break;
      place -= tokens;
    }
    query.token = query_start[query.seq] + place;
    behind = query_start[query.seq + 1] - query.token;
  }
  query.position = context_lens[query.seq] - behind;
  if (slot_mapping[query.token] < 0) query.position = -1;  // padding sees nothing
  query.first = first_key(query.position, p.window);
  return query;
}

// Returns the place of a key's products and weights in a tile. Those of the keys that a lane has in
// a chunk are consecutive.
template <typename T, int kDim>
inline int place_of_key(int key) {
  typedef AttentionLayout<T, kDim> Layout;
  const int of_chunk = key % Layout::kChunkKeys;
  return key - of_chunk + of_chunk % Layout::kKeysAtOnce * Layout::kKeysPerLane +
         of_chunk / Layout::kKeysAtOnce;
}

// Reads a lane's pieces of a chunk, whose first key is number `first` of the tile; zeros for keys
// that are not seen. entry: each lane has the entry of one key of the tile. is_all_seen: whether
// all keys of the tile are seen. Then loads have no condition; compilers make conditional loads
// wait for one another.
template <typename T, int kDim, typename Bits>
inline void load_chunk(device const T* entries, int entry, bool is_all_seen, int first, int lane,
                       thread Bits* pieces) {
  typedef AttentionLayout<T, kDim> Layout;
  constexpr int kLanes = Layout::kLanesPerKey;
  constexpr int kPieces = Layout::kPiecesPerLane;
  if (is_all_seen && Layout::kPieces == kLanes * kPieces) {
#pragma unroll
    for (int i = 0; i < Layout::kKeysPerLane; ++i) {
      const int from = simd_shuffle(entry, first + i * Layout::kKeysAtOnce + lane / kLanes);
#pragma unroll
      for (int j = 0; j < kPieces; ++j) {
        pieces[i * kPieces + j] = load_piece<kDim>(
            entries + size_t(from) * KvEntry<T, kDim>::kElements, lane % kLanes + j * kLanes);
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < Layout::kKeysPerLane; ++i) {
      const int from = simd_shuffle(entry, first + i * Layout::kKeysAtOnce + lane / kLanes);
#pragma unroll
      for (int j = 0; j < kPieces; ++j) {
        pieces[i * kPieces + j] =
            load_seen_piece<T, kDim>(entries, from, lane % kLanes + j * kLanes);
      }
    }
  }
}

// Gives a lane the scales of its keys of a chunk. scales: each lane has the scales of one key of
// the tile.
template <typename T, int kDim>
inline void share_scales(uint scales, int first, int lane, thread uint* of_keys) {
  typedef AttentionLayout<T, kDim> Layout;
#pragma unroll
  for (int i = 0; i < Layout::kKeysPerLane; ++i) {
    of_keys[i] = 0;
    if (KvEntry<T, kDim>::kIsCoded) {
      of_keys[i] =
          simd_shuffle(scales, first + i * Layout::kKeysAtOnce + lane / Layout::kLanesPerKey);
    }
  }
}

// Reads kCount floats. If kCount is a multiple of 4, the address is a multiple of 16 bytes.
template <int kCount>
inline void load_shared(threadgroup const float* from, thread float* to) {
  if (kCount % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const float4 four = *(threadgroup const float4*)(from + i);
      to[i] = four.x;
      to[i + 1] = four.y;
      to[i + 2] = four.z;
      to[i + 3] = four.w;
    }
  } else {
    for (int i = 0; i < kCount; ++i) to[i] = from[i];
  }
}

// Writes the products of kHeads queries and a chunk's keys: queries [kHeads, kPaddedDim], products
// [kHeads, 32].
template <typename T, int kDim, int kHeads, typename Bits>
inline void multiply_chunk(thread const Bits* pieces, thread const uint* scales,
                           threadgroup const float* queries, int first, int lane,
                           threadgroup float* products) {
  typedef AttentionLayout<T, kDim> Layout;
  constexpr int kValues = Layout::kPieceValues;
  constexpr int kKeys = Layout::kKeysPerLane;
  constexpr int kLanes = Layout::kLanesPerKey;
  constexpr int kSums = kHeads * kKeys;
  float sums[kSums];
#pragma unroll
  for (int i = 0; i < kSums; ++i) sums[i] = 0.0f;
#pragma unroll
  for (int j = 0; j < Layout::kPiecesPerLane; ++j) {
    const int piece = lane % kLanes + j * kLanes;
    if (piece < Layout::kPieces) {
      float with[kHeads * kValues];
#pragma unroll
      for (int h = 0; h < kHeads; ++h)
        load_shared<kValues>(queries + h * Layout::kPaddedDim + piece * kValues,
                             with + h * kValues);
#pragma unroll
      for (int i = 0; i < kKeys; ++i) {
        float key[kValues];
        widen_piece<T>(pieces[i * Layout::kPiecesPerLane + j], scales[i], key);
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
#pragma unroll
          for (int e = 0; e < kValues; ++e)
            sums[h * kKeys + i] = fma(with[h * kValues + e], key[e], sums[h * kKeys + i]);
        }
      }
    }
  }
  fold_lanes<kSums, kLanes, 1>(sums, lane);
  constexpr int kOwned = kSums > kLanes ? kSums / kLanes : 1;
  constexpr int kSharers = kSums < kLanes ? kLanes / kSums : 1;  // lanes that hold the same sum
  if (lane % kSharers == 0) {
#pragma unroll
    for (int i = 0; i < kOwned; ++i) {
      const int number = first_folded<kSums, kLanes, 1>(lane) + i;
      products[number / kKeys * kAttentionTile + first + lane / kLanes * kKeys + number % kKeys] =
          sums[i];
    }
  }
}

// Turns a tile's products into weights, zero for a key that is not seen. product, weight: the
// places of the lane's key. They differ if keys and values have pieces of different sizes. All
// lanes have read before one writes, since each needs the largest score.
inline void weigh_tile(threadgroup const float* product, threadgroup float* weight, bool is_seen,
                       int lane, float scale, float soft_cap, threadgroup float* state) {
  const float score = is_seen ? score_of(*product, scale, soft_cap) : -INFINITY;
  const float largest = simd_max(score);
  const float weighed = is_seen ? precise::exp(score - largest) : 0.0f;
  float sum = weighed;
  fold_lanes<1, 32, 1>(&sum, lane);
  *weight = weighed;
  if (lane == 0) {
    state[0] = largest;
    state[1] = sum;
  }
}

// Adds a chunk's weighted values to the sums of kHeads queries: weights [kHeads, 32], sums
// [kHeads, kPaddedDim]. Values of keys that are not seen are zeros, like their weights.
template <typename T, int kDim, int kHeads, typename Bits>
inline void add_chunk(thread const Bits* pieces, thread const uint* scales,
                      threadgroup const float* weights, int first, int lane,
                      threadgroup float* sums) {
  typedef AttentionLayout<T, kDim> Layout;
  constexpr int kValues = Layout::kPieceValues;
  constexpr int kKeys = Layout::kKeysPerLane;
  constexpr int kFolded = kValues / Layout::kKeysAtOnce;
  float with[kHeads * kKeys];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    load_shared<kKeys>(weights + h * kAttentionTile + first + lane / Layout::kLanesPerKey * kKeys,
                       with + h * kKeys);
  }
#pragma unroll
  for (int j = 0; j < Layout::kPiecesPerLane; ++j) {
    float added[kHeads * kValues];
#pragma unroll
    for (int e = 0; e < kHeads * kValues; ++e) added[e] = 0.0f;
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      float value[kValues];
      widen_piece<T>(pieces[i * Layout::kPiecesPerLane + j], scales[i], value);
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
#pragma unroll
        for (int e = 0; e < kValues; ++e)
          added[h * kValues + e] = fma(with[h * kKeys + i], value[e], added[h * kValues + e]);
      }
    }
    const int piece = lane % Layout::kLanesPerKey + j * Layout::kLanesPerKey;
    const int d = piece * kValues + first_folded<kValues, 32, Layout::kLanesPerKey>(lane);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      fold_lanes<kValues, 32, Layout::kLanesPerKey>(added + h * kValues, lane);
      threadgroup float* const to = sums + h * Layout::kPaddedDim + d;
      if (piece < Layout::kPieces) {
#pragma unroll
        for (int e = 0; e < kFolded; ++e) {
          const float value = added[h * kValues + e];
          to[e] = first == 0 ? value : to[e] + value;
        }
      }
    }
  }
}

// A lane's key of a tile.
struct AttentionKey {
  int entry;  // -1: not seen
  uint key_scales;
  uint value_scales;
};

// Reads a tile of keys and its values for `num_heads` queries, two at a time, and writes their
// weighted sums and states. (Loops are not unrolled: a decode takes less time than fetching much
// code.)
//   pieces: the tile's first chunk of keys; queries [num_heads, kPaddedDim of K], weights
//   [num_heads, 32], sums [num_heads, kPaddedDim of V], states [num_heads, 2]
template <typename K, typename V, int kDim, typename Bits>
inline void attend_tile(device const K* keys, device const V* values, AttentionKey key, int lane,
                        int num_heads, thread Bits* pieces, threadgroup const float* queries,
                        threadgroup float* weights, threadgroup float* sums,
                        threadgroup float* states, constant AttentionParameters& p) {
  typedef AttentionLayout<K, kDim> Keys;
  typedef AttentionLayout<V, kDim> Values;
  constexpr int kKeyStride = Keys::kPaddedDim;
  constexpr int kValueStride = Values::kPaddedDim;
  const bool is_all_seen = simd_all(key.entry >= 0);
  uint key_scales[Keys::kKeysPerLane];
  uint value_scales[Values::kKeysPerLane];
#pragma unroll 1
  for (int first = 0; first < kAttentionTile; first += Keys::kChunkKeys) {
    if (first > 0) load_chunk<K, kDim>(keys, key.entry, is_all_seen, first, lane, pieces);
    share_scales<K, kDim>(key.key_scales, first, lane, key_scales);
    int h = 0;
#pragma unroll 1
    for (; h + 1 < num_heads; h += 2) {
      multiply_chunk<K, kDim, 2>(pieces, key_scales, queries + h * kKeyStride, first, lane,
                                 weights + h * kAttentionTile);
    }
    if (h < num_heads) {
      multiply_chunk<K, kDim, 1>(pieces, key_scales, queries + h * kKeyStride, first, lane,
                                 weights + h * kAttentionTile);
    }
  }
  typename AttentionPiece<V>::Bits others[Values::kKeysPerLane * Values::kPiecesPerLane];
  load_chunk<V, kDim>(values, key.entry, is_all_seen, 0, lane, others);
  simdgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll 2
  for (int h = 0; h < num_heads; ++h) {
    threadgroup float* const tile = weights + h * kAttentionTile;
    weigh_tile(tile + place_of_key<K, kDim>(lane), tile + place_of_key<V, kDim>(lane),
               key.entry >= 0, lane, p.scale, p.soft_cap, states + h * 2);
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll 1
  for (int first = 0; first < kAttentionTile; first += Values::kChunkKeys) {
    if (first > 0) load_chunk<V, kDim>(values, key.entry, is_all_seen, first, lane, others);
    share_scales<V, kDim>(key.value_scales, first, lane, value_scales);
    int h = 0;
#pragma unroll 1
    for (; h + 1 < num_heads; h += 2) {
      add_chunk<V, kDim, 2>(others, value_scales, weights + h * kAttentionTile, first, lane,
                            sums + h * kValueStride);
    }
    if (h < num_heads) {
      add_chunk<V, kDim, 1>(others, value_scales, weights + h * kAttentionTile, first, lane,
                            sums + h * kValueStride);
    }
  }
}

// Reads a value of each of up to kCount partitions, `stride` apart, with all loads in flight at
// once. Past the last partition, the last one is read again.
template <int kCount>
inline void load_parts(device const float* parts, int stride, int count, thread float* values) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = parts[size_t(min(i, count - 1)) * stride];
}

#endif  // PAGODA_ATTENTION_DECODE_METAL_H
