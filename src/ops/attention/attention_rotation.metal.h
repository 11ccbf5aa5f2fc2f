// Rotates queries if keys are codes, and rotates outputs back if values are codes. A SIMD group
// takes a row at a time.
#ifndef PAGODA_ATTENTION_ROTATION_METAL_H
#define PAGODA_ATTENTION_ROTATION_METAL_H

#include "ops/attention/attention_prompt.metal.h"
#include "ops/attention/attention_prompt_values.metal.h"

// Rotates a query into `to` [kPaddedDim], in the order of a key's pieces. Places without a
// dimension become zero.
template <typename K, int kDim>
inline void rotate_query(device const float* query, int lane, threadgroup float* to) {
  constexpr int kRegisters = KvEntry<K, kDim>::kRegisters;
  float x[kRegisters];
#pragma unroll
  for (int i = 0; i < kRegisters; ++i) x[i] = i * 32 + lane < kDim ? query[i * 32 + lane] : 0.0f;
  rotate_entry<kDim>(x, lane);
#pragma unroll
  for (int i = 0; i < kRegisters; ++i) {
    if (i * 32 + lane < kDim) to[place_of_dim<K, kDim>(i * 32 + lane)] = x[i];
  }
  for (int place = lane; place < AttentionLayout<K, kDim>::kPaddedDim; place += 32) {
    if (dim_at_place<K, kDim>(place) >= kDim) to[place] = 0.0f;
  }
}

// Rotates an output back, and writes it.
template <int kDim>
inline void rotate_output(thread float* x, int lane, device float* out) {
  constexpr float kFactor = 1.0f / float(int(KvEntry<char, kDim>::kWidth));
  rotate_entry<kDim>(x, lane);
#pragma unroll
  for (int i = 0; i < KvEntry<char, kDim>::kRegisters; ++i) {
    if (i * 32 + lane < kDim) out[i * 32 + lane] = x[i] * kFactor;
  }
}

// Rotates `size` values in threadgroup memory. All threads of the threadgroup call it.
inline void rotate_shared(threadgroup float* x, int size, int width, int thread_index,
                          int num_threads) {
  for (int far = 1; far < width; far *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = thread_index; i < size / 2; i += num_threads) {
      threadgroup float* const pair = x + i / far * 2 * far + i % far;
      const float a = pair[0];
      const float b = pair[far];
      pair[0] = a + b;
      pair[far] = a - b;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Returns the offset of the query, or of the output, of a row of attention_prompt's threadgroup.
// Rows past the last token get that of the first token.
inline size_t place_of_row(AttentionRows rows, int row, int first_head, int num_heads,
                           int token_stride, int head_stride) {
  const int place = row / num_heads;
  const int token = place < rows.num_tokens ? rows.token + place : rows.token;
  return size_t(token) * token_stride + size_t(first_head + row % num_heads) * head_stride;
}

// Reads a thread's shares of its two rows' queries, rotated. own [512]: memory of the SIMD group.
template <typename K, int kDim>
inline void load_rotated_queries(device const float* q, AttentionRows rows, int first_head,
                                 int num_heads, int simd_group, int lane,
                                 constant AttentionParameters& p, threadgroup float* own,
                                 thread float* queries) {
  typedef AttentionPrompt<K, kDim> Prompt;
  constexpr int kPairs = 32 / Prompt::kLanes;  // pairs of rows of a SIMD group
#pragma unroll 1
  for (int pair = 0; pair < kPairs; ++pair) {
#pragma unroll
    for (int a = 0; a < 2; ++a) {
      const int row = (simd_group * kPairs + pair) * 2 + a;
      rotate_query<K, kDim>(
          q + place_of_row(rows, row, first_head, num_heads, p.token_stride, p.head_stride), lane,
          own);
      simdgroup_barrier(mem_flags::mem_threadgroup);
      if (lane / Prompt::kLanes == pair) {
        load_shared_query<K, kDim>(own, lane % Prompt::kLanes, queries + a * Prompt::kQueryValues);
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
  }
}

// Finishes rows whose last keys are in a partition: row `a` of each pair of rows. is_ended: whether
// the thread's row is one of them. out: holds the rows' sums so far. own [512]: memory of the SIMD
// group.
template <typename V, int kDim>
inline void end_rotated_rows(AttentionRowEnd end, bool is_ended, int a, thread const float* joined,
                             AttentionRows rows, int first_head, int num_heads, int simd_group,
                             int lane, constant AttentionParameters& p, threadgroup float* own,
                             device float* out) {
  typedef AttentionPrompt<V, kDim> Prompt;
  constexpr int kLanes = Prompt::kLanes;
  constexpr int kPairs = 32 / kLanes;
  constexpr int kRegisters = KvEntry<V, kDim>::kRegisters;
#pragma unroll 1
  for (int pair = 0; pair < kPairs; ++pair) {
    if (simd_shuffle(is_ended ? 1 : 0, pair * kLanes) == 0) continue;
    const int row = (simd_group * kPairs + pair) * 2 + a;
    device float* const to =
        out + place_of_row(rows, row, first_head, num_heads, p.heads * kDim, kDim);
    if (lane / kLanes == pair) {
      for (int i = 0; i < Prompt::kFoursPerThread; ++i) {
        for (int e = 0; e < 4; ++e) {
          const int place = (lane % kLanes + i * kLanes) * 4 + e;
          const int d = dim_at_place<V, kDim>(place);
          if (d < kDim) own[d] = end_value(end, end.is_first ? 0.0f : to[d], joined[i * 4 + e]);
        }
      }
    }
    simdgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    float x[kRegisters];
#pragma unroll
    for (int i = 0; i < kRegisters; ++i) x[i] = i * 32 + lane < kDim ? own[i * 32 + lane] : 0.0f;
    rotate_output<kDim>(x, lane, to);
    simdgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  }
}

#endif  // PAGODA_ATTENTION_ROTATION_METAL_H
