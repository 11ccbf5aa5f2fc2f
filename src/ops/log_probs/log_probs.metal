// log_probs on Apple GPUs: each threadgroup takes a row.
//
// The sum of exponentials is a sum of whole numbers (token_weight.metal.h), which is exact in any
// order. Rounding to them costs at most 2^-25 of the likeliest token. The likeliest tokens are
// those above a threshold. One SIMD group sorts them, with a lane for each, because num_top is at
// most 32.
#include "backend/gpu/kernel.metal.h"
#include "ops/log_probs/log_probs_metal.h"
#include "ops/sample/logits_row.metal.h"

// A row's logarithms: log_prob(x) = (x - max) - log_sum.
struct RowLogarithm {
  float max;
  float log_sum;
};

inline float log_prob(uint key, RowLogarithm of) {
  const float logit = key == kKeyOfMinusInfinity ? -INFINITY : logit_of(key);
  const float distance = logit - of.max;
  return distance - of.log_sum;
}

template <typename T>
inline RowLogarithm logarithm_of(thread const LogitsRow<T>& row, float max, RowPlace place,
                                 threadgroup uint* scratch) {
  const TokenMeasure measure = weight_measure(weighing_of(max, 0x3f800000u));  // 1.0f
  const ulong sum = sum_row(row, measure, place, scratch);
  RowLogarithm logarithm;
  logarithm.max = max;
  logarithm.log_sum = precise::log(float(sum) * as_type<float>(0x2a800000u));  // 2^-42
  return logarithm;
}

// Returns one more than the number of larger logits.
template <typename T>
inline int rank_of(thread const LogitsRow<T>& row, uint key, TokenMeasure measure, RowPlace place,
                   threadgroup uint* scratch) {
  measure.least = key + 1;
  return 1 + int(sum_row(row, measure, place, scratch));
}

// Writes the keys and the ids of those tokens whose measure is not 0, in no order, and returns how
// many there are. REQUIRES: at most 32. keys, ids: [32]; counter: one word
template <typename T>
inline uint collect(thread const LogitsRow<T>& row, thread const TokenMeasure& measure,
                    RowPlace place, threadgroup uint* keys, threadgroup uint* ids,
                    threadgroup atomic_uint* counter) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (place.simd_group == 0 && place.lane == 0)
    atomic_store_explicit(counter, 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint quad = 32 * place.simd_group + place.lane; quad < num_quads_of(row);
       quad += kRowThreads) {
    const uint4 bits = load_quad(row, quad);
    for (uint i = 0; i < 4; ++i) {
      if (measure_of(measure, bits[i], 4 * quad + i) == 0) continue;
      const uint at = atomic_fetch_add_explicit(counter, 1u, memory_order_relaxed);
      keys[at] = key_of(bits[i]);
      ids[at] = 4 * quad + i;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return atomic_load_explicit(counter, memory_order_relaxed);
}

// Returns a measure that counts the num_top likeliest tokens, the lowest ids among equals. It
// counts fewer if the others are -inf.
template <typename T>
inline TokenMeasure likeliest(thread const LogitsRow<T>& row, uint num_top, TokenMeasure measure,
                              thread const LargestLogit& largest, RowPlace place,
                              threadgroup uint* scratch, threadgroup uint* histogram) {
  TokenMeasure count = measure;
  count.least = max(count.least, largest.floor);
  const RowThreshold threshold = threshold_of(row, count, num_top, place, scratch, histogram);
  if (!threshold.is_reached) return measure;
  measure.least = threshold.key;
  measure.last_tie = first_beyond(row, ties_of(threshold.key, measure), threshold.left - 1,
                                  /*is_share=*/false, place, scratch);
  return measure;
}

// Writes ids of -1 and log-probabilities of 0, for a row that has no token.
inline void write_fault(uint at, uint num_top, RowPlace place, device int* top_ids,
                        device float* top_logprobs) {
  if (place.simd_group != 0 || place.lane >= num_top) return;
  top_ids[size_t(at) * num_top + place.lane] = -1;
  top_logprobs[size_t(at) * num_top + place.lane] = 0.0f;
}

// Writes num_top of the tokens that `measure` counts, best first, and -1 after them.
template <typename T>
inline void write_top(thread const LogitsRow<T>& row, thread const TokenMeasure& measure,
                      RowLogarithm logarithm, uint at, uint num_top, RowPlace place,
                      threadgroup uint* scratch, device int* top_ids, device float* top_logprobs) {
  const uint count =
      collect(row, measure, place, scratch, scratch + 32, (threadgroup atomic_uint*)(scratch + 64));
  if (place.simd_group != 0) return;
  const bool is_token = place.lane < count;
  const uint key = is_token ? scratch[place.lane] : 0;
  const uint id = is_token ? scratch[32 + place.lane] : 0;
  uint num_better = 0;
  for (uint i = 0; i < count; ++i) {
    const uint other = simd_shuffle(key, ushort(i));
    const uint other_id = simd_shuffle(id, ushort(i));
    num_better += other > key || (other == key && other_id < id) ? 1 : 0;
  }
  if (place.lane >= num_top) return;
  const size_t to = size_t(at) * num_top + (is_token ? num_better : place.lane);
  top_ids[to] = is_token ? int(id) : -1;
  top_logprobs[to] = is_token ? log_prob(key, logarithm) : 0.0f;
}

// logits: [tokens, vocab]; top_ids, top_logprobs: [n, num_top], not used if num_top is 0;
// the others: [n]
template <typename T>
[[kernel]] [[max_total_threads_per_threadgroup(kRowThreads)]] void log_probs(
    device const T* logits [[buffer(0)]], device const int* rows [[buffer(1)]],
    device const int* token_ids [[buffer(2)]], device float* chosen [[buffer(3)]],
    device int* rank [[buffer(4)]], device int* top_ids [[buffer(5)]],
    device float* top_logprobs [[buffer(6)]], constant LogProbsParameters& p [[buffer(7)]],
    threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  const RowPlace place = {simd_group, lane};
  const uint at = group.x;
  const uint row_id = p.has_rows != 0 ? uint(rows[at]) : at;
  const LogitsRow<T> row = {logits + size_t(row_id) * p.vocab, p.vocab, p.is_aligned != 0};
  threadgroup uint* const scratch = (threadgroup uint*)shared;
  threadgroup uint* const histogram = scratch + kRowScratchBytes / 4;
  const int token_id = token_ids[at];
  const LargestLogit largest = largest_of(row, place, scratch);
  const bool is_first = simd_group == 0 && lane == 0;
  if (token_id < 0 || is_fault(largest)) {
    if (is_first) {
      chosen[at] = 0.0f;
      rank[at] = 0;
    }
    write_fault(at, p.num_top, place, top_ids, top_logprobs);
    return;
  }
  const float max = logit_of(largest.key);
  const RowLogarithm logarithm = logarithm_of(row, max, place, scratch);
  const TokenMeasure count = counting(weight_measure(weighing_of(max, 0x3f800000u)));
  const uint key = key_of(as_type<uint>(float(row.logits[token_id])));
  const int of_chosen = rank_of(row, key, count, place, scratch);
  if (is_first) {
    chosen[at] = log_prob(key, logarithm);
    rank[at] = of_chosen;
  }
  if (p.num_top == 0) return;
  const TokenMeasure top = likeliest(row, p.num_top, count, largest, place, scratch, histogram);
  write_top(row, top, logarithm, at, p.num_top, place, scratch, top_ids, top_logprobs);
}
