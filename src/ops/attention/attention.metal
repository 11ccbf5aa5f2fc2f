// attention on Apple GPUs. attention_decode and attention_merge compute decodes, attention_prompt
// computes prompts. All three share one arithmetic (attention_arithmetic.metal.h), so that a
// query's bits depend only on its position, its window and its sequence's entries. They do not
// depend on the batch, the chunk, the blocks or the kernel.
//
//   q             [tokens, heads, head_dim] at strides
//   keys, values  [blocks, block_size, kv_heads, elements of an entry], of types K and V
//   key_scales, value_scales  [blocks, kv_heads, num_scales, block_size]; any buffer for keys or
//                             values without scales
//   query_start, context_lens, block_tables, first_slots, slot_mapping: as in StepBatch
//   sinks         [heads]
//   out           [tokens, heads * head_dim]; padding's rows are zeros
//
// A part is a sequence's tokens in the step; parts of more than kAttentionShortPart tokens are
// prompts. No kernel reads a block table's entry or a key that no query of its threadgroup sees.
#include "backend/gpu/kernel.metal.h"
#include "ops/attention/attention_arithmetic.metal.h"
#include "ops/attention/attention_decode.metal.h"
#include "ops/attention/attention_metal.h"
#include "ops/attention/attention_prompt.metal.h"
#include "ops/attention/attention_prompt_values.metal.h"
#include "ops/attention/attention_rotation.metal.h"

// Computes the attention of one token to one partition of its keys, in heads_at_once heads that
// share a kv head. A SIMD group reads a tile at a time.
//   grid: kv_heads * the runs of heads_at_once, partitions, decodes and tokens of short parts
//   sums, states: the op's out and any buffer if num_partitions is 1; else for attention_merge
//   [rows, partitions, heads, head_dim] and [rows, partitions, heads, 2]
template <typename K, typename V, int kDim>
[[kernel]] [[max_total_threads_per_threadgroup(kAttentionDecodeThreads)]] void attention_decode(
    device const float* q [[buffer(0)]], device const K* keys [[buffer(1)]],
    device const V* values [[buffer(2)]], device const int* query_start [[buffer(3)]],
    device const int* context_lens [[buffer(4)]], device const int* block_tables [[buffer(5)]],
    device const int* first_slots [[buffer(6)]], device const int* slot_mapping [[buffer(7)]],
    device const float* sinks [[buffer(8)]], device const ushort* key_scales [[buffer(9)]],
    device const ushort* value_scales [[buffer(10)]], device float* sums [[buffer(11)]],
    device float* states [[buffer(12)]], constant AttentionParameters& p [[buffer(13)]],
    threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  typedef AttentionLayout<K, kDim> Keys;
  constexpr int kKeyStride = Keys::kPaddedDim;
  constexpr int kValueStride = AttentionLayout<V, kDim>::kPaddedDim;
  const int num_threads = p.simd_groups * 32;
  const int kv_head = int(group.x) / p.runs_of_heads;
  const int run_begin = int(group.x) % p.runs_of_heads * p.heads_at_once;
  const int num_heads = min(p.heads_at_once, p.heads_of_kv - run_begin);
  const int first_head = kv_head * p.heads_of_kv + run_begin;
  const AttentionQuery query =
      find_decode(int(group.z), query_start, context_lens, slot_mapping, p);
  AttentionTable table;
  table.blocks = block_tables + size_t(query.seq) * p.max_blocks;
  table.first_slot = p.has_first_slots != 0 ? first_slots[query.seq] : -1;
  table.block_size = p.block_size;
  table.kv_heads = p.kv_heads;
  table.kv_head = kv_head;
  const bool is_whole = p.num_partitions == 1;
  device float* const out = sums + (size_t(query.token) * p.heads + first_head) * kDim;
  if (query.position < 0) {
#pragma unroll 1
    for (int i = int(thread_id); is_whole && i < num_heads * kDim; i += num_threads) out[i] = 0.0f;
    return;
  }
  const int partition = query.first / kAttentionPartition + int(group.y);
  const int begin = max(query.first, partition * kAttentionPartition);
  const int end = min(query.position + 1, (partition + 1) * kAttentionPartition);
  if (begin >= end) return;

  int key = (begin / kAttentionTile + int(simd_group)) * kAttentionTile + int(lane);
  bool is_seen = key >= begin && key < end;
  int block = block_of(table, key, is_seen);

  threadgroup float* const queries = shared;
  threadgroup float* const joined = queries + num_heads * kKeyStride;
  threadgroup float* const totals = joined + num_heads * kValueStride;  // [heads, 2]
  threadgroup float* const tile_sums = totals + (num_heads + 1) / 2 * 4;
  threadgroup float* const tile_weights = tile_sums + p.simd_groups * num_heads * kValueStride;
  threadgroup float* const tile_states = tile_weights + p.simd_groups * num_heads * 32;
  threadgroup float* const tile_factors = tile_states + p.simd_groups * num_heads * 2;
  device const float* const head_queries =
      q + size_t(query.token) * p.token_stride + size_t(first_head) * p.head_stride;
  if (KvEntry<K, kDim>::kIsCoded) {
#pragma unroll 1
    for (int h = int(simd_group); h < num_heads; h += p.simd_groups) {
      rotate_query<K, kDim>(head_queries + size_t(h) * p.head_stride, int(lane),
                            queries + h * kKeyStride);
    }
  } else {
#pragma unroll 1
    for (int i = int(thread_id); i < num_heads * kKeyStride; i += num_threads) {
      const int h = i / kKeyStride, d = i % kKeyStride;
      queries[i] = d < kDim ? head_queries[size_t(h) * p.head_stride + d] : 0.0f;
    }
  }
#pragma unroll 1
  for (int i = int(thread_id); i < num_heads * kValueStride; i += num_threads) joined[i] = 0.0f;
#pragma unroll 1
  for (int h = int(thread_id); h < num_heads; h += num_threads) {
    totals[h * 2] = -INFINITY;
    totals[h * 2 + 1] = 0.0f;
  }
  device const K* const head_keys = keys + kv_head * KvEntry<K, kDim>::kElements;
  device const V* const head_values = values + kv_head * KvEntry<V, kDim>::kElements;
  const int end_tile = (end + kAttentionTile - 1) / kAttentionTile;
  AttentionKey own;
  own.entry = entry_of(table, block, key, is_seen);
  own.key_scales = scales_of<K>(table, block, key, is_seen, key_scales);
  own.value_scales = scales_of<V>(table, block, key, is_seen, value_scales);
  typename AttentionPiece<K>::Bits pieces[Keys::kKeysPerLane * Keys::kPiecesPerLane];
  load_chunk<K, kDim>(head_keys, own.entry, simd_all(own.entry >= 0), 0, int(lane), pieces);
  threadgroup_barrier(mem_flags::mem_threadgroup);

#pragma unroll 1
  for (int round = begin / kAttentionTile; round < end_tile; round += p.simd_groups) {
    key += p.simd_groups * kAttentionTile;
    is_seen = key < end;
    block = block_of(table, key, is_seen);
    if (round + int(simd_group) < end_tile) {
      const int place = int(simd_group) * num_heads;
      attend_tile<K, V, kDim>(head_keys, head_values, own, int(lane), num_heads, pieces, queries,
                              tile_weights + place * 32, tile_sums + place * kValueStride,
                              tile_states + place * 2, p);
    }
    own.entry = entry_of(table, block, key, is_seen);
    own.key_scales = scales_of<K>(table, block, key, is_seen, key_scales);
    own.value_scales = scales_of<V>(table, block, key, is_seen, value_scales);
    if (round + p.simd_groups + int(simd_group) < end_tile)
      load_chunk<K, kDim>(head_keys, own.entry, simd_all(own.entry >= 0), 0, int(lane), pieces);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int num_tiles = min(p.simd_groups, end_tile - round);
    find_factors(tile_states, num_tiles, num_heads, totals, int(thread_id), num_threads,
                 tile_factors);
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll 1
    for (int i = int(thread_id); i < num_heads * (kValueStride + 1); i += num_threads) {
      const bool is_sum = i < num_heads * kValueStride;  // else it is a head's state
      const int h = is_sum ? i / kValueStride : i - num_heads * kValueStride;
      threadgroup float* const to = is_sum ? joined + i : totals + h * 2 + 1;
      *to = join_values(tile_factors + h * 2, num_heads * 2,
                        is_sum ? tile_sums + i : tile_states + h * 2 + 1,
                        is_sum ? num_heads * kValueStride : num_heads * 2, num_tiles, *to);
      for (int t = 0; !is_sum && t < num_tiles; ++t)
        totals[h * 2] = max(totals[h * 2], tile_states[(t * num_heads + h) * 2]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }

  const size_t record = (size_t(group.z) * p.num_partitions + group.y) * p.heads + first_head;
  if (KvEntry<V, kDim>::kIsCoded && is_whole) {
#pragma unroll 1
    for (int h = int(simd_group); h < num_heads; h += p.simd_groups) {
      float x[KvEntry<V, kDim>::kRegisters];
#pragma unroll
      for (int i = 0; i < KvEntry<V, kDim>::kRegisters; ++i) {
        const int d = i * 32 + int(lane);
        const int place = place_of_dim<V, kDim>(d);
        x[i] = d < kDim ? whole_value(joined[h * kValueStride + place], totals + h * 2,
                                      p.has_sinks != 0, sinks + first_head + h)
                        : 0.0f;
      }
      rotate_output<kDim>(x, int(lane), out + h * kDim);
    }
    return;
  }
#pragma unroll 1
  for (int i = int(thread_id); i < num_heads * kDim; i += num_threads) {
    const int h = i / kDim;
    const float value = joined[h * kValueStride + place_of_dim<V, kDim>(i % kDim)];
    if (is_whole) {
      out[i] = whole_value(value, totals + h * 2, p.has_sinks != 0, sinks + first_head + h);
    } else {
      sums[record * kDim + i] = value;
    }
  }
#pragma unroll 1
  for (int i = int(thread_id); !is_whole && i < num_heads * 2; i += num_threads)
    states[record * 2 + i] = totals[i];
}

// Joins the partitions of one query of one head, and writes its output.
//   grid: heads, decodes and tokens of short parts
[[kernel]] void attention_merge(
    device const int* query_start [[buffer(0)]], device const int* context_lens [[buffer(1)]],
    device const int* slot_mapping [[buffer(2)]], device const float* sinks [[buffer(3)]],
    device const float* sums [[buffer(4)]], device const float* states [[buffer(5)]],
    device float* out [[buffer(6)]], constant AttentionParameters& p [[buffer(7)]],
    threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  constexpr int kValues = 512 / kAttentionMergeThreads;  // values of a thread, at most
  const int head = int(group.x);
  const AttentionQuery query =
      find_decode(int(group.y), query_start, context_lens, slot_mapping, p);
  const int num_threads = min((p.head_dim + 31) / 32 * 32, int(kAttentionMergeThreads));
  const int num_partitions = query.position < 0 ? 0
                                                : query.position / kAttentionPartition -
                                                      query.first / kAttentionPartition + 1;
  threadgroup float* const parts = shared;  // [partitions, 2]
  threadgroup float* const factors = parts + kAttentionMergedAtOnce * 2;
  threadgroup float* const total = factors + kAttentionMergedAtOnce * 2;  // [2]
  threadgroup float* const whole = total + 2;  // [head_dim], if values are rotated
  AttentionState state = empty_state();
  float merged[kValues];
  for (int v = 0; v < kValues; ++v) merged[v] = 0.0f;
  size_t record = size_t(group.y) * p.num_partitions * p.heads + head;
  for (int first = 0; first < num_partitions; first += kAttentionMergedAtOnce) {
    const int count = min(num_partitions - first, int(kAttentionMergedAtOnce));
    float values[kValues * kAttentionMergedAtOnce];
#pragma unroll
    for (int v = 0; v < kValues; ++v) {
      const int d = min(int(thread_id) + v * num_threads, p.head_dim - 1);
      load_parts<kAttentionMergedAtOnce>(sums + record * p.head_dim + d, p.heads * p.head_dim,
                                         count, values + v * kAttentionMergedAtOnce);
    }
    for (int i = int(thread_id); i < count * 2; i += num_threads)
      parts[i] = states[(record + size_t(i / 2) * p.heads) * 2 + i % 2];
    if (thread_id == 0) total[0] = state.largest;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    find_factors(parts, count, 1, total, int(thread_id), num_threads, factors);
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
    for (int i = 0; i < kAttentionMergedAtOnce; ++i) {
      if (i >= count) continue;
      const AttentionFactors pair = factors_at(factors + i * 2);
      state.largest = max(state.largest, parts[i * 2]);
      state.sum = join_value(pair, state.sum, parts[i * 2 + 1]);
#pragma unroll
      for (int v = 0; v < kValues; ++v)
        merged[v] = join_value(pair, merged[v], values[v * kAttentionMergedAtOnce + i]);
    }
    record += size_t(count) * p.heads;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  const bool has_sink = p.has_sinks != 0;
  const float sink = has_sink ? sinks[head] : 0.0f;
  device float* const row = out + (size_t(query.token) * p.heads + head) * p.head_dim;
  for (int v = 0; v < kValues; ++v) {
    const int d = int(thread_id) + v * num_threads;
    if (d >= p.head_dim) continue;
    const float value = num_partitions > 0 ? finish_value(state, merged[v], has_sink, sink) : 0.0f;
    if (p.value_width > 1) {
      whole[d] = value;
    } else {
      row[d] = value;
    }
  }
  if (p.value_width == 1) return;
  rotate_shared(whole, p.head_dim, p.value_width, int(thread_id), num_threads);
  for (int d = int(thread_id); d < p.head_dim; d += num_threads)
    row[d] = whole[d] * (1.0f / float(p.value_width));
}

// Computes the attention of a prompt's tokens to all of their keys: of up to tokens_at_once tokens,
// in heads_at_once heads that share a kv head. Between partitions, `out` holds a row's sums.
//   grid: kv_heads * the runs of heads_at_once, the runs of tokens_at_once of all prompts
template <typename K, typename V, int kDim>
[[kernel]] void attention_prompt(
    device const float* q [[buffer(0)]], device const K* keys [[buffer(1)]],
    device const V* values [[buffer(2)]], device const int* query_start [[buffer(3)]],
    device const int* context_lens [[buffer(4)]], device const int* block_tables [[buffer(5)]],
    device const int* first_slots [[buffer(6)]], device const int* slot_mapping [[buffer(7)]],
    device const float* sinks [[buffer(8)]], device const ushort* key_scales [[buffer(9)]],
    device const ushort* value_scales [[buffer(10)]], device float* out [[buffer(11)]],
    constant AttentionParameters& p [[buffer(12)]], threadgroup float* shared [[threadgroup(0)]],
    PAGODA_THREAD) {
  typedef AttentionPrompt<K, kDim> Prompt;
  constexpr int kLanes = Prompt::kLanes;
  constexpr int kValues = AttentionPrompt<V, kDim>::kFoursPerThread * 4;
  constexpr bool kHasKeyScales = KvEntry<K, kDim>::kIsCoded;
  constexpr bool kHasValueScales = KvEntry<V, kDim>::kIsCoded;
  const int thread_index = int(thread_id);
  const int kv_head = int(group.x) / p.runs_of_heads;
  const int run_begin = int(group.x) % p.runs_of_heads * p.heads_at_once;
  const int num_heads = min(p.heads_at_once, p.heads_of_kv - run_begin);
  const int first_head = kv_head * p.heads_of_kv + run_begin;
  const AttentionRows rows = find_rows(p.first_group + int(group.y), query_start, context_lens, p);
  if (rows.num_tokens == 0) return;

  threadgroup float* const stage = shared;
  threadgroup float* const products = stage + Prompt::kStageFloats;  // products of keys and rows
  threadgroup int* const entries =
      (threadgroup int*)(products +
                         int(kAttentionTile) * int(Prompt::kWeightStride));  // of a partition
  // Scales of a partition, as widen_piece() takes them.
  threadgroup uint* const of_keys = (threadgroup uint*)(entries + int(kAttentionPartition));
  threadgroup uint* const of_values = of_keys + (kHasKeyScales ? int(kAttentionPartition) : 0);
  threadgroup float* const own = stage + int(simd_group) * 512;  // the SIMD group's part
  const int j = thread_index % kLanes;
  const int first_row = thread_index / kLanes * 2;
  AttentionQuery row[2];
  size_t row_out[2];
  float queries[2 * Prompt::kQueryValues];
  float joined[2 * kValues];  // sums of the partition
  AttentionState totals[2];
#pragma unroll
  for (int a = 0; a < 2; ++a) {
    const int place = (first_row + a) / num_heads;
    const int head = first_head + (first_row + a) % num_heads;
    const bool is_row = place < rows.num_tokens;
    row[a].seq = rows.seq;
    row[a].token = is_row ? rows.token + place : -1;
    row[a].position = is_row && slot_mapping[rows.token + place] >= 0 ? rows.position + place : -1;
    row[a].first = first_key(row[a].position, p.window);
    const int token = is_row ? rows.token + place : rows.token;
    row_out[a] = (size_t(token) * p.heads + head) * kDim;
    if (!kHasKeyScales) {
      load_query<K, kDim>(q + size_t(token) * p.token_stride + size_t(head) * p.head_stride, j,
                          queries + a * Prompt::kQueryValues);
    }
    totals[a] = empty_state();
  }
  if (kHasKeyScales) {
    load_rotated_queries<K, kDim>(q, rows, first_head, num_heads, int(simd_group), int(lane), p,
                                  own, queries);
  }

  AttentionTable table;
  table.blocks = block_tables + size_t(rows.seq) * p.max_blocks;
  table.first_slot = p.has_first_slots != 0 ? first_slots[rows.seq] : -1;
  table.block_size = p.block_size;
  table.kv_heads = p.kv_heads;
  table.kv_head = kv_head;
  device const K* const head_keys = keys + kv_head * KvEntry<K, kDim>::kElements;
  device const V* const head_values = values + kv_head * KvEntry<V, kDim>::kElements;
  const int seen_begin = first_key(rows.position, p.window);
  const int seen_end = rows.position + rows.num_tokens;
  int partition_begin = seen_begin / kAttentionPartition * kAttentionPartition;
  for (; partition_begin < seen_end; partition_begin += kAttentionPartition) {
    const int partition_end = partition_begin + kAttentionPartition;
    const int begin = max(seen_begin, partition_begin);
    const int end = min(seen_end, partition_end);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = thread_index; i < kAttentionPartition; i += kAttentionPromptThreads) {
      const int key = partition_begin + i;
      const bool is_seen = key >= begin && key < end;
      const int block = block_of(table, key, is_seen);
      entries[i] = entry_of(table, block, key, is_seen);
      if (kHasKeyScales) of_keys[i] = scales_of<K>(table, block, key, is_seen, key_scales);
      if (kHasValueScales) of_values[i] = scales_of<V>(table, block, key, is_seen, value_scales);
    }
    AttentionState states[2];
    states[0] = empty_state();
    states[1] = empty_state();
#pragma unroll
    for (int i = 0; i < 2 * kValues; ++i) joined[i] = 0.0f;
    int tile_begin = begin / kAttentionTile * kAttentionTile;
    for (; tile_begin < end; tile_begin += kAttentionTile) {
      const int tile_place = tile_begin - partition_begin;
      threadgroup const int* const tile_entries = entries + tile_place;
      bool is_seen[2];
      AttentionFactors factors[2];
      for (int a = 0; a < 2; ++a) {
        is_seen[a] = row[a].first < tile_begin + kAttentionTile && row[a].position >= tile_begin;
      }
      const bool is_any_seen = simd_any(is_seen[0] || is_seen[1]);
      const bool is_all_seen =
          simd_all(sees_all(row[0], tile_begin) && sees_all(row[1], tile_begin));
      const bool is_all_read = begin <= tile_begin && end >= tile_begin + kAttentionTile;
      multiply_tile<K, kDim>(head_keys, tile_entries, of_keys + tile_place, is_all_read, queries,
                             is_any_seen, thread_index, stage, products + first_row);
      simdgroup_barrier(mem_flags::mem_threadgroup);
      if (is_any_seen) {
#pragma unroll
        for (int a = 0; a < 2; ++a) {
          const AttentionState tile = weigh_row<kLanes, Prompt::kWeightStride>(
              products + first_row + a, row[a], tile_begin, j, p.scale, p.soft_cap);
          if (is_seen[a]) factors[a] = join_state(states[a], tile.largest, tile.sum);
        }
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
      add_tile<V, kDim>(head_values, tile_entries, of_values + tile_place, is_all_read, is_seen,
                        factors, is_any_seen, is_all_seen, thread_index, products + first_row,
                        stage, joined);
    }
    if (kHasValueScales) threadgroup_barrier(mem_flags::mem_threadgroup);  // the stage was read
#pragma unroll
    for (int a = 0; a < 2; ++a) {
      const bool is_here = row[a].first < partition_end && row[a].position >= partition_begin;
      AttentionRowEnd ending;
      ending.is_first = row[a].first >= partition_begin;
      ending.is_last = row[a].position < partition_end;
      ending.has_sink = p.has_sinks != 0;
      ending.sink = 0.0f;
      if (is_here) {
        ending.factors = join_state(totals[a], states[a].largest, states[a].sum);
        if (ending.has_sink) ending.sink = sinks[first_head + (first_row + a) % num_heads];
      }
      ending.total = totals[a];
      const bool is_rotated = kHasValueScales && ending.is_last;
      if (is_here && !is_rotated)
        end_row<V, kDim>(ending, joined + a * kValues, j, out + row_out[a]);
      if (kHasValueScales) {
        end_rotated_rows<V, kDim>(ending, is_here && is_rotated, a, joined + a * kValues, rows,
                                  first_head, num_heads, int(simd_group), int(lane), p, own, out);
      }
    }
  }
  for (int a = 0; a < 2; ++a) {
    if (row[a].token < 0 || row[a].position >= 0) continue;  // not padding
    for (int d = j; d < kDim; d += kLanes) out[row_out[a] + d] = 0.0f;
  }
}
