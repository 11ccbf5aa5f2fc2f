// attention_prompt: the queries of a prompt. A row is a query of a head. A threadgroup takes 16 to
// 64 rows of one kv head, which share keys and values in threadgroup memory.
#ifndef PAGODA_ATTENTION_PROMPT_METAL_H
#define PAGODA_ATTENTION_PROMPT_METAL_H

#include "ops/attention/attention_arithmetic.metal.h"
#include "ops/attention/attention_metal.h"

// kLanes threads share kRowsPerThread rows. Thread j of them has the pieces of queries and keys
// that lanes j, j + kLanes, ... have in attention_decode. Of the sums it has runs j, j + kLanes,
// ... of four floats.
template <typename T, int kDim>
struct AttentionPrompt {
  typedef AttentionLayout<T, kDim> Layout;
  enum {
    kRowsPerThread = 2,
    kLanes = kDim <= 128   ? 8
             : kDim <= 256 ? 16
                           : 32,
    kRows = int(kAttentionPromptThreads) / int(kLanes) * int(kRowsPerThread),
    kClasses = int(Layout::kLanesPerKey) / int(kLanes),
    kClassValues = int(Layout::kPiecesPerLane) * int(Layout::kPieceValues),
    kQueryValues = int(kClasses) * int(kClassValues),  // values of a row in one thread
    kFours = int(Layout::kPaddedDim) / 4,
    // Runs of four values that a thread sums at once, and has in all.
    kFoursAtOnce = int(kLanes) <= 16 && int(kFours) > int(kLanes) ? 2 : 1,
    kFoursPerThread = (int(kFours) + int(kLanes) * int(kFoursAtOnce) - 1) /
                      (int(kLanes) * int(kFoursAtOnce)) * int(kFoursAtOnce),
    kWeightStride = int(kRows) + 8,  // so that keys are in different banks
    // A stage is kStageKeys whole keys, or a slice of a tile's values.
    kStageFloats = 4096,
    kStageKeys = int(Layout::kPaddedDim) <= 128   ? 32
                 : int(Layout::kPaddedDim) <= 256 ? 16
                                                  : 8,
    kSlicePieces =
        int(Layout::kPaddedDim) <= 128 ? int(Layout::kPieces) : 128 / int(Layout::kPieceValues),
    kSliceValues = int(kSlicePieces) * int(Layout::kPieceValues),
    kSliceFoursPerThread = 32 / int(kLanes)
  };
};

// The rows of a threadgroup: tokens [token, token + num_tokens) of a sequence, each in all heads of
// the threadgroup.
struct AttentionRows {
  int seq;
  int token;
  int num_tokens;  // 0: none
  int position;    // position of the first token
};

inline AttentionRows find_rows(int number, device const int* query_start,
                               device const int* context_lens, constant AttentionParameters& p) {
  AttentionRows rows;
  rows.seq = p.num_decodes;
  rows.token = 0;
  rows.num_tokens = 0;
  rows.position = 0;
  int left = number;
  for (; rows.seq < p.num_seqs; ++rows.seq) {
    const int begin = query_start[rows.seq];
    const int tokens = query_start[rows.seq + 1] - begin;
    if (tokens <= kAttentionShortPart) continue;
    const int groups = (tokens + p.tokens_at_once - 1) / p.tokens_at_once;
    if (left < groups) {
      const int place = left * p.tokens_at_once;
      rows.token = begin + place;
      rows.num_tokens = min(p.tokens_at_once, tokens - place);
      rows.position = context_lens[rows.seq] - tokens + place;
      break;
    }
    left -= groups;
  }
  return rows;
}

// Returns whether a row sees every key of a tile.
inline bool sees_all(AttentionQuery row, int first_key) {
  return row.first <= first_key && row.position >= first_key + kAttentionTile - 1;
}

// Copies pieces [first_piece, first_piece + kCount) of kKeys entries, widened, to `stage` [kKeys,
// kCount pieces].
// - kIsSplit: an entry has the first four values of every piece first. If pieces have eight values,
//   the last four of every piece follow. So pieces that are read together are in different banks.
//   Else values are in order.
// - entries[key]: -1 for a key that no row sees, which becomes zeros. is_all_seen: no key is -1.
// - scales[key]: read only for codes.
template <typename T, int kDim, int kKeys, int kCount, bool kIsSplit>
inline void stage_entries(device const T* cache, threadgroup const int* entries,
                          threadgroup const uint* scales, int first_piece, bool is_all_seen,
                          int thread_index, threadgroup float* stage) {
  typedef AttentionLayout<T, kDim> Layout;
  constexpr int kThreads = kAttentionPromptThreads;
  constexpr int kAll = kKeys * kCount;
  constexpr int kRuns = (kAll + kThreads - 1) / kThreads;
  typename AttentionPiece<T>::Bits pieces[kRuns];
  if (is_all_seen && kAll % kThreads == 0 && Layout::kPieces % kCount == 0) {
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
      const int n = thread_index + i * kThreads;
      pieces[i] =
          load_piece<kDim>(cache + size_t(entries[n / kCount]) * KvEntry<T, kDim>::kElements,
                           first_piece + n % kCount);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
      const int n = thread_index + i * kThreads;
      pieces[i] = load_seen_piece<T, kDim>(cache, n < kAll ? entries[n / kCount] : -1,
                                           first_piece + n % kCount);
    }
  }
#pragma unroll
  for (int i = 0; i < kRuns; ++i) {
    const int n = thread_index + i * kThreads;
    if (n >= kAll) continue;
    float widened[Layout::kPieceValues];
    widen_piece<T>(pieces[i], KvEntry<T, kDim>::kIsCoded ? scales[n / kCount] : 0u, widened);
    threadgroup float* const to = stage + n / kCount * (kCount * Layout::kPieceValues);
#pragma unroll
    for (int e = 0; e < Layout::kPieceValues; e += 4) {
      float4 four;
      four.x = widened[e];
      four.y = widened[e + 1];
      four.z = widened[e + 2];
      four.w = widened[e + 3];
      const int place =
          kIsSplit ? (e / 4 * kCount + n % kCount) * 4 : n % kCount * Layout::kPieceValues + e;
      *(threadgroup float4*)(to + place) = four;
    }
  }
}

// Writes the products of a thread's rows and four staged keys, which are kPaddedDim floats apart.
template <typename T, int kDim>
inline void multiply_keys(thread const float* queries, threadgroup const float* keys, int j,
                          threadgroup float* products) {
  typedef AttentionLayout<T, kDim> Layout;
  typedef AttentionPrompt<T, kDim> Prompt;
  constexpr int kClasses = Prompt::kClasses;
  constexpr int kLanes = Prompt::kLanes;
  float sums[8];  // [row, key]
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    float first[kClasses];
    float second[kClasses];
#pragma unroll
    for (int i = 0; i < kClasses; ++i) {
      first[i] = 0.0f;
      second[i] = 0.0f;
#pragma unroll
      for (int jj = 0; jj < Layout::kPiecesPerLane; ++jj) {
        const int piece = j + i * kLanes + jj * Layout::kLanesPerKey;
        thread const float* const row =
            queries + i * Prompt::kClassValues + jj * Layout::kPieceValues;
        if (piece < Layout::kPieces) {
#pragma unroll
          for (int e = 0; e < Layout::kPieceValues; e += 4) {
            const float4 key = *(threadgroup const float4*)(keys + k * Layout::kPaddedDim +
                                                            (e / 4 * Layout::kPieces + piece) * 4);
            first[i] = fma(row[e], key.x, first[i]);
            first[i] = fma(row[e + 1], key.y, first[i]);
            first[i] = fma(row[e + 2], key.z, first[i]);
            first[i] = fma(row[e + 3], key.w, first[i]);
            second[i] = fma(row[Prompt::kQueryValues + e], key.x, second[i]);
            second[i] = fma(row[Prompt::kQueryValues + e + 1], key.y, second[i]);
            second[i] = fma(row[Prompt::kQueryValues + e + 2], key.z, second[i]);
            second[i] = fma(row[Prompt::kQueryValues + e + 3], key.w, second[i]);
          }
        }
      }
    }
    fold_values<kClasses>(first);
    fold_values<kClasses>(second);
    sums[k] = first[0];
    sums[4 + k] = second[0];
  }
  fold_lanes<8, kLanes, 1>(sums, j);
  if (j % (kLanes / 8) == 0) {
    const int place = first_folded<8, kLanes, 1>(j);
    products[place % 4 * Prompt::kWeightStride + place / 4] = sums[0];
  }
}

// Turns a row's products of a tile into weights, -1 for keys that the row does not see. Returns the
// tile's state. products[key * kWeightStride]
template <int kLanes, int kWeightStride>
inline AttentionState weigh_row(threadgroup float* products, AttentionQuery row, int first_key,
                                int j, float scale, float soft_cap) {
  constexpr int kKeys = kAttentionTile / kLanes;
  AttentionState state = empty_state();
  float scores[kKeys];
  float weights[kKeys];
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    const int key = j + i * kLanes;
    const bool is_seen = first_key + key >= row.first && first_key + key <= row.position;
    scores[i] = is_seen ? score_of(products[key * kWeightStride], scale, soft_cap) : -INFINITY;
    state.largest = max(state.largest, scores[i]);
  }
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2)
    state.largest = max(state.largest, simd_shuffle_xor(state.largest, mask));
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    const int key = j + i * kLanes;
    const bool is_seen = first_key + key >= row.first && first_key + key <= row.position;
    weights[i] = is_seen ? precise::exp(scores[i] - state.largest) : 0.0f;
    products[key * kWeightStride] = is_seen ? weights[i] : -1.0f;
  }
  fold_values<kKeys>(weights);
  fold_lanes<1, kLanes, 1>(weights, j);
  state.sum = weights[0];
  return state;
}

// Reads a thread's share of a row's query, with zeros from kEnd on. kEnd is kDim, or kPaddedDim for
// a query in threadgroup memory, which is in the order of a key's pieces.
template <typename T, int kDim, int kEnd, typename Query>
inline void load_share(Query query, int j, thread float* to) {
  typedef AttentionLayout<T, kDim> Layout;
  typedef AttentionPrompt<T, kDim> Prompt;
#pragma unroll
  for (int i = 0; i < Prompt::kQueryValues; ++i) {
    const int lane = j + i / Prompt::kClassValues * Prompt::kLanes;
    const int piece = lane + i % Prompt::kClassValues / Layout::kPieceValues * Layout::kLanesPerKey;
    const int place = piece * Layout::kPieceValues + i % Layout::kPieceValues;
    to[i] = place < kEnd ? query[place] : 0.0f;
  }
}
template <typename T, int kDim>
inline void load_query(device const float* query, int j, thread float* to) {
  load_share<T, kDim, kDim, device const float*>(query, j, to);
}
template <typename T, int kDim>
inline void load_shared_query(threadgroup const float* query, int j, thread float* to) {
  load_share<T, kDim, AttentionLayout<T, kDim>::kPaddedDim, threadgroup const float*>(query, j, to);
}

// Multiplies the rows' queries with a tile's keys, through the stage.
template <typename T, int kDim>
inline void multiply_tile(device const T* keys, threadgroup const int* entries,
                          threadgroup const uint* scales, bool is_all_read,
                          thread const float* queries, bool is_any_seen, int thread_index,
                          threadgroup float* stage, threadgroup float* products) {
  typedef AttentionLayout<T, kDim> Layout;
  typedef AttentionPrompt<T, kDim> Prompt;
  for (int first = 0; first < kAttentionTile; first += Prompt::kStageKeys) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    stage_entries<T, kDim, Prompt::kStageKeys, Layout::kPieces, true>(
        keys, entries + first, scales + first, 0, is_all_read, thread_index, stage);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int k = 0; is_any_seen && k < Prompt::kStageKeys; k += 4) {
      multiply_keys<T, kDim>(queries, stage + k * Layout::kPaddedDim, thread_index % Prompt::kLanes,
                             products + (first + k) * Prompt::kWeightStride);
    }
  }
}

#endif  // PAGODA_ATTENTION_PROMPT_METAL_H
