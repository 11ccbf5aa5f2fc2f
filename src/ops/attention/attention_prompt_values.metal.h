// attention_prompt's second half: the weighted sums of a tile's values, and the end of a partition.
#ifndef PAGODA_ATTENTION_PROMPT_VALUES_METAL_H
#define PAGODA_ATTENTION_PROMPT_VALUES_METAL_H

#include "ops/attention/attention_prompt.metal.h"

// Adds one weighted value to a chain, or zero if the value is not seen: then its weight is -1.
template <bool kAllSeen>
inline float add_weighted(float sum, float weight, float value) {
  if (kAllSeen) return fma(weight, value, sum);
  return weight < 0.0f ? sum + 0.0f : fma(weight, value, sum);
}

// Computes one chain of a chunk: sums [2 rows, kWide] over keys kKeysAtOnce apart.
template <typename T, int kDim, int kWide, bool kAllSeen>
inline void sum_chain(threadgroup const float* values, threadgroup const float* weights,
                      thread const int* fours, thread float* sums) {
  typedef AttentionLayout<T, kDim> Layout;
  typedef AttentionPrompt<T, kDim> Prompt;
#pragma unroll
  for (int i = 0; i < 2 * kWide; ++i) sums[i] = 0.0f;
#pragma unroll
  for (int i = 0; i < Layout::kKeysPerLane; ++i) {
    const int key = i * Layout::kKeysAtOnce;
    const float2 weight = *(threadgroup const float2*)(weights + key * Prompt::kWeightStride);
#pragma unroll
    for (int f = 0; f < kWide; f += 4) {
      const float4 four =
          *(threadgroup const float4*)(values + key * Prompt::kSliceValues + fours[f / 4] * 4);
      thread float* const second = sums + kWide;
      sums[f] = add_weighted<kAllSeen>(sums[f], weight.x, four.x);
      sums[f + 1] = add_weighted<kAllSeen>(sums[f + 1], weight.x, four.y);
      sums[f + 2] = add_weighted<kAllSeen>(sums[f + 2], weight.x, four.z);
      sums[f + 3] = add_weighted<kAllSeen>(sums[f + 3], weight.x, four.w);
      second[f] = add_weighted<kAllSeen>(second[f], weight.y, four.x);
      second[f + 1] = add_weighted<kAllSeen>(second[f + 1], weight.y, four.y);
      second[f + 2] = add_weighted<kAllSeen>(second[f + 2], weight.y, four.z);
      second[f + 3] = add_weighted<kAllSeen>(second[f + 3], weight.y, four.w);
    }
  }
}

template <int kCount>
inline void add_values(thread float* to, thread const float* from) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = to[i] + from[i];
}

// Computes the weighted sums of a tile, [2 rows, kWide], of kWide / 4 runs of four values.
template <typename T, int kDim, int kWide, bool kAllSeen>
inline void sum_tile(threadgroup const float* values, threadgroup const float* weights,
                     thread const int* fours, thread float* tile) {
  typedef AttentionLayout<T, kDim> Layout;
  constexpr int kKeysAtOnce = Layout::kKeysAtOnce;
  constexpr int kStride = AttentionPrompt<T, kDim>::kSliceValues;
  constexpr int kWeightStride = AttentionPrompt<T, kDim>::kWeightStride;
  float sums[2 * kWide];
  float others[2 * kWide];
  float lasts[2 * kWide];
#pragma unroll 1
  for (int first = 0; first < kAttentionTile; first += Layout::kChunkKeys) {
    threadgroup const float* const v = values + first * kStride;
    threadgroup const float* const w = weights + first * kWeightStride;
    sum_chain<T, kDim, kWide, kAllSeen>(v, w, fours, sums);
    if (kKeysAtOnce == 4) {
      sum_chain<T, kDim, kWide, kAllSeen>(v + 2 * kStride, w + 2 * kWeightStride, fours, others);
      add_values<2 * kWide>(sums, others);
    }
    if (kKeysAtOnce >= 2) {
      sum_chain<T, kDim, kWide, kAllSeen>(v + kStride, w + kWeightStride, fours, others);
      if (kKeysAtOnce == 4) {
        sum_chain<T, kDim, kWide, kAllSeen>(v + 3 * kStride, w + 3 * kWeightStride, fours, lasts);
        add_values<2 * kWide>(others, lasts);
      }
      add_values<2 * kWide>(sums, others);
    }
#pragma unroll
    for (int i = 0; i < 2 * kWide; ++i) tile[i] = first == 0 ? sums[i] : tile[i] + sums[i];
  }
}

// Adds a tile's weighted values to the partition's sums of the rows that see it.
template <typename T, int kDim>
inline void add_tile(device const T* values, threadgroup const int* entries,
                     threadgroup const uint* scales, bool is_all_read, thread const bool* is_seen,
                     thread const AttentionFactors* factors, bool is_any_seen, bool is_all_seen,
                     int thread_index, threadgroup const float* weights, threadgroup float* stage,
                     thread float* joined) {
  typedef AttentionLayout<T, kDim> Layout;
  typedef AttentionPrompt<T, kDim> Prompt;
  constexpr int kAtOnce = Prompt::kFoursAtOnce;
  constexpr int kWide = kAtOnce * 4;
  const int j = thread_index % Prompt::kLanes;
#pragma unroll
  for (int begin = 0; begin < Prompt::kFoursPerThread; begin += Prompt::kSliceFoursPerThread) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    stage_entries<T, kDim, kAttentionTile, Prompt::kSlicePieces, false>(
        values, entries, scales, begin * Prompt::kLanes * 4 / Layout::kPieceValues, is_all_read,
        thread_index, stage);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (!is_any_seen) continue;
#pragma unroll
    for (int i = 0; i < Prompt::kSliceFoursPerThread; i += kAtOnce) {
      if (begin + i >= Prompt::kFoursPerThread) continue;
      int fours[kAtOnce];
      for (int f = 0; f < kAtOnce; ++f) {
        // Past the end the first run is summed again, and its sums are not read.
        const int place = j + (i + f) * Prompt::kLanes;
        fours[f] = place + begin * Prompt::kLanes < Prompt::kFours ? place : 0;
      }
      float tile[2 * kWide];
      if (is_all_seen) {
        sum_tile<T, kDim, kWide, true>(stage, weights, fours, tile);
      } else {
        sum_tile<T, kDim, kWide, false>(stage, weights, fours, tile);
      }
#pragma unroll
      for (int a = 0; a < 2; ++a) {
        thread float* const row = joined + (a * Prompt::kFoursPerThread + begin + i) * 4;
        if (is_seen[a]) {
#pragma unroll
          for (int e = 0; e < kWide; ++e)
            row[e] = join_value(factors[a], row[e], tile[a * kWide + e]);
        }
      }
    }
  }
}

// The end of a partition for a row: how the partition's sums are joined to the row's.
struct AttentionRowEnd {
  AttentionFactors factors;  // with which the sums are joined
  bool is_first;             // whether `out` holds no sums of the row yet
  bool is_last;              // whether the row ends, with `total` as its state
  AttentionState total;
  bool has_sink;
  float sink;
};

// Returns one value of `out` from its value before and that of the partition.
inline float end_value(AttentionRowEnd end, float before, float joined) {
  const float value = join_value(end.factors, end.is_first ? 0.0f : before, joined);
  return end.is_last ? finish_value(end.total, value, end.has_sink, end.sink) : value;
}

// Joins a partition's sums to the row's sums in `out`, if there are any.
template <typename V, int kDim>
inline void end_row(AttentionRowEnd end, thread const float* joined, int j, device float* out) {
  typedef AttentionPrompt<V, kDim> Prompt;
  constexpr bool kHasFours = kDim % (AttentionLayout<V, kDim>::kIsSplit ? 8 : 4) == 0;
#pragma unroll
  for (int i = 0; i < Prompt::kFoursPerThread; ++i) {
    const int place = (j + i * Prompt::kLanes) * 4;
    if (kHasFours) {
      const int d = dim_at_place<V, kDim>(place);
      if (d >= kDim) continue;
      float4 four;
      four.x = 0.0f;
      four.y = 0.0f;
      four.z = 0.0f;
      four.w = 0.0f;
      if (!end.is_first) four = *(device const float4*)(out + d);
      four.x = end_value(end, four.x, joined[i * 4]);
      four.y = end_value(end, four.y, joined[i * 4 + 1]);
      four.z = end_value(end, four.z, joined[i * 4 + 2]);
      four.w = end_value(end, four.w, joined[i * 4 + 3]);
      *(device float4*)(out + d) = four;
    } else {
      for (int e = 0; e < 4; ++e) {
        const int d = dim_at_place<V, kDim>(place + e);
        if (d >= kDim) continue;
        out[d] = end_value(end, end.is_first ? 0.0f : out[d], joined[i * 4 + e]);
      }
    }
  }
}

#endif  // PAGODA_ATTENTION_PROMPT_VALUES_METAL_H
