// Functions of a threadgroup of kRowThreads threads on a row of logits: its largest logit, sums
// over its tokens, and the token or the logit at which a sum is reached.
//
// Sums are of 64-bit integers, which are exact in any order. Logits are compared as integers of the
// same order ("keys"), which also distinguish subnormal logits, and show NaN. Nothing is sorted: a
// threshold is found by histograms over the keys' bits, from the likeliest bucket on. Each
// histogram divides the bucket in which the one before has reached the sum. All threads of the
// group call each function together. It returns the same value to all of them, unless its comment
// says otherwise.
#ifndef PAGODA_LOGITS_ROW_METAL_H
#define PAGODA_LOGITS_ROW_METAL_H

#include "backend/gpu/kernel.metal.h"
#include "ops/sample/logits_row_metal.h"
#include "ops/sample/token_weight.metal.h"

enum : uint {
  kKeyOfMinusInfinity = 0x007fffffu,
  kKeyOfLowest = 0x00800000u,  // the least finite number
  kKeyOfInfinity = 0xff800000u,
  kKeyOfNan = 0xffffffffu,
  kBitsOfMinusInfinity = 0xff800000u,
};

template <typename T>
struct LogitsRow {
  device const T* logits;  // [vocab]
  uint vocab;
  bool is_aligned;  // whether each row begins at a multiple of four logits
};

// A thread's place in its threadgroup.
struct RowPlace {
  uint simd_group;
  uint lane;
};

// Returns the key for a logit's bits: an integer of the same order. -0 and +0 have the same key.
inline uint key_of(uint bits) {
  if (bits == 0x80000000u) return 0x80000000u;
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
inline float logit_of(uint key) {
  return as_type<float>((key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key);
}

// Returns the bits of logits 4 * quad to 4 * quad + 3, as float32. Beyond the row they are those of
// -inf, which no function counts.
template <typename T>
inline uint4 load_scalars(thread const LogitsRow<T>& row, uint quad) {
  uint4 bits;
  for (uint i = 0; i < 4; ++i) {
    const uint id = 4 * quad + i;
    bits[i] = id < row.vocab ? as_type<uint>(float(row.logits[id])) : kBitsOfMinusInfinity;
  }
  return bits;
}
template <typename T>
inline uint4 load_quad(thread const LogitsRow<T>& row, uint quad) {
  return load_scalars(row, quad);
}
inline uint4 load_quad(thread const LogitsRow<float>& row, uint quad) {
  if (!row.is_aligned) return load_scalars(row, quad);
  return *(device const uint4*)(row.logits + 4 * quad);
}
template <typename T>
inline uint num_quads_of(thread const LogitsRow<T>& row) {
  return (row.vocab + 3) / 4;
}

// A row's largest logit, and where it is.
struct LargestLogit {
  uint key;    // kKeyOfNan also for a NaN of any sign
  uint id;     // the lowest one
  uint floor;  // at least kRowThreads keys are not less than this; 0 if there are fewer
};

inline bool is_fault(thread const LargestLogit& largest) {
  return largest.key >= kKeyOfInfinity || largest.key == kKeyOfMinusInfinity;
}
// Returns the id, or the number for a row without a token (draw/drawn_token.h).
inline int drawn_of(thread const LargestLogit& largest) {
  if (largest.key >= kKeyOfInfinity) return -1;
  return largest.key == kKeyOfMinusInfinity ? -2 : int(largest.id);
}

template <typename T>
inline LargestLogit largest_of(thread const LogitsRow<T>& row, RowPlace place,
                               threadgroup uint* scratch) {
  uint key = 0;
  uint id = 0;
  for (uint quad = 32 * place.simd_group + place.lane; quad < num_quads_of(row);
       quad += kRowThreads) {
    const uint4 bits = load_quad(row, quad);
    for (uint i = 0; i < 4; ++i) {
      uint of_token = key_of(bits[i]);
      if (of_token < kKeyOfMinusInfinity) of_token = kKeyOfNan;  // a negative NaN
      if (of_token > key) {
        key = of_token;
        id = 4 * quad + i;
      }
    }
  }
  const uint of_simd = simd_max(key);
  const uint first = simd_min(key == of_simd ? id : 0xffffffffu);
  const uint floor = simd_min(key);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (place.lane == 0) {
    scratch[place.simd_group] = of_simd;
    scratch[32 + place.simd_group] = first;
    scratch[64 + place.simd_group] = floor;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  LargestLogit largest;
  largest.key = simd_max(scratch[place.lane]);
  largest.id =
      simd_min(scratch[place.lane] == largest.key ? scratch[32 + place.lane] : 0xffffffffu);
  largest.floor = simd_min(scratch[64 + place.lane]);
  return largest;
}

// Returns the least key of the row that is `least` or more. REQUIRES: there is one.
template <typename T>
inline uint smallest_key(thread const LogitsRow<T>& row, uint least, RowPlace place,
                         threadgroup uint* scratch) {
  uint smallest = 0xffffffffu;
  for (uint quad = 32 * place.simd_group + place.lane; quad < num_quads_of(row);
       quad += kRowThreads) {
    const uint4 bits = load_quad(row, quad);
    for (uint i = 0; i < 4; ++i) {
      const uint key = key_of(bits[i]);
      if (key >= least) smallest = min(smallest, key);
    }
  }
  smallest = simd_min(smallest);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (place.lane == 0) scratch[place.simd_group] = smallest;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_min(scratch[place.lane]);
}

// How much a token counts in a sum: its weight, or 1; 0 if it is not one of the tokens to count.
struct TokenMeasure {
  uint least;      // keys from this one, which is finite,
  uint most;       // to this one count
  uint last_tie;   // of tokens whose key is `least`, those up to this id
  bool is_weight;  // false: each counts 1
  Weighing weighing;
};

// Returns a measure that counts the weights of all tokens except those of -inf.
inline TokenMeasure weight_measure(Weighing weighing) {
  TokenMeasure measure;
  measure.least = kKeyOfLowest;
  measure.most = 0xffffffffu;
  measure.last_tie = 0xffffffffu;
  measure.is_weight = true;
  measure.weighing = weighing;
  return measure;
}
inline TokenMeasure counting(TokenMeasure measure) {
  measure.is_weight = false;
  return measure;
}
// Returns a measure that counts the tokens of a key.
inline TokenMeasure ties_of(uint key, thread const TokenMeasure& of) {
  TokenMeasure measure = counting(of);
  measure.least = key;
  measure.most = key;
  measure.last_tie = 0xffffffffu;
  return measure;
}

inline ulong measure_of(thread const TokenMeasure& measure, uint bits, uint id) {
  const uint key = key_of(bits);
  if (key < measure.least || key > measure.most) return 0;
  if (key == measure.least && id > measure.last_tie) return 0;
  if (!measure.is_weight) return 1;
  return token_weight(as_type<float>(bits), measure.weighing);
}
inline ulong measure_of_quad(thread const TokenMeasure& measure, uint4 bits, uint quad) {
  ulong sum = 0;
  for (uint i = 0; i < 4; ++i) sum += measure_of(measure, bits[i], 4 * quad + i);
  return sum;
}

// Joins two words to 64 bits. SIMD groups share 64 bits as two words.
inline ulong join(uint low, uint high) {
  return (ulong(high) << 32) + ulong(low);
}
inline ulong shuffle_long(ulong x, uint lane) {
  const uint low = simd_shuffle(uint(x), ushort(lane));
  const uint high = simd_shuffle(uint(x >> 32), ushort(lane));
  return join(low, high);
}
// Returns the sum over all lanes. Parts of 27, 27 and 10 bits are summed, so that each sum fits in
// a word.
inline ulong sum_long(ulong x) {
  const uint low = simd_sum(uint(x) & 0x07ffffffu);
  const uint middle = simd_sum(uint(x >> 27) & 0x07ffffffu);
  const uint high = simd_sum(uint(x >> 54));
  return ulong(low) + (ulong(middle) << 27) + (ulong(high) << 54);
}
// Returns the sum over the lanes up to this one, computed in the same way.
inline ulong prefix_sum_long(ulong x) {
  const uint low = simd_prefix_inclusive_sum(uint(x) & 0x07ffffffu);
  const uint middle = simd_prefix_inclusive_sum(uint(x >> 27) & 0x07ffffffu);
  const uint high = simd_prefix_inclusive_sum(uint(x >> 54));
  return ulong(low) + (ulong(middle) << 27) + (ulong(high) << 54);
}
// Returns to lane i the x of SIMD group i. x: the same in all lanes of a SIMD group
inline ulong share_among_groups(ulong x, RowPlace place, threadgroup uint* scratch) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (place.lane == 0) {
    scratch[place.simd_group] = uint(x);
    scratch[32 + place.simd_group] = uint(x >> 32);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return join(scratch[place.lane], scratch[32 + place.lane]);
}

// Returns the sum over the quads [begin, end) of a SIMD group, in all of its lanes.
template <typename T>
inline ulong sum_quads(thread const LogitsRow<T>& row, thread const TokenMeasure& measure,
                       uint begin, uint end, uint lane) {
  ulong sum = 0;
  for (uint quad = begin + lane; quad < end; quad += 32)
    sum += measure_of_quad(measure, load_quad(row, quad), quad);
  return sum_long(sum);
}

// Returns how many quads each SIMD group takes of `count`: a multiple of its lanes.
inline uint segment_of(uint count) {
  return (count + kRowThreads - 1) / kRowThreads * 32;
}

// Returns the sum of the measure over the whole row.
template <typename T>
inline ulong sum_row(thread const LogitsRow<T>& row, thread const TokenMeasure& measure,
                     RowPlace place, threadgroup uint* scratch) {
  const uint size = segment_of(num_quads_of(row));
  const uint begin = place.simd_group * size;
  const ulong sum =
      sum_quads(row, measure, begin, min(begin + size, num_quads_of(row)), place.lane);
  return sum_long(share_among_groups(sum, place, scratch));
}

// Returns the first id up to which the sum of the measure is more than `amount`. If `is_share`, the
// bound is share_of(sum over the row, amount) instead. REQUIRES: there is one.
template <typename T>
inline uint first_beyond(thread const LogitsRow<T>& row, TokenMeasure measure, ulong amount,
                         bool is_share, RowPlace place, threadgroup uint* scratch) {
  uint begin = 0;
  uint end = num_quads_of(row);
  // Gives each SIMD group a segment. The segment in which the sum passes `amount` is divided again,
  // until it has one quad for each lane.
  for (uint size = 0; size != 32;) {
    size = segment_of(end - begin);
    const uint first = begin + place.simd_group * size;
    const ulong sum = sum_quads(row, measure, first, min(first + size, end), place.lane);
    const ulong reached = prefix_sum_long(share_among_groups(sum, place, scratch));
    if (is_share) amount = share_of(shuffle_long(reached, 31), amount);
    is_share = false;
    const uint crossing = min(simd_sum(uint(reached <= amount)), 31u);
    if (crossing > 0) amount -= shuffle_long(reached, crossing - 1);
    begin += crossing * size;
    end = min(begin + size, end);
  }
  const uint quad = begin + place.lane;
  uint4 bits;
  bits.x = kBitsOfMinusInfinity;
  bits.y = bits.x;
  bits.z = bits.x;
  bits.w = bits.x;
  if (quad < end) bits = load_quad(row, quad);
  const ulong sum = measure_of_quad(measure, bits, quad);
  const ulong reached = prefix_sum_long(sum);
  const uint crossing = min(simd_sum(uint(reached <= amount)), 31u);
  ulong left = amount - (reached - sum);  // only used from the lane that crosses
  uint id = 4 * quad;
  for (uint i = 0; i < 3; ++i) {
    const ulong of_token = measure_of(measure, bits[i], 4 * quad + i);
    if (of_token > left) break;
    left -= of_token;
    ++id;
  }
  return simd_shuffle(id, ushort(crossing));
}

// The end of the shortest prefix of the row's tokens, largest logit first, over which the sum of
// the measure reaches a target.
struct RowThreshold {
  uint key;         // of the last logit
  ulong left;       // the part of the target that tokens of this key must add; at least 1
  bool is_reached;  // false: all tokens together do not reach the target
};

// Adds to a bucket of 64 bits in two words; a wrapping lower word carries.
inline void add_to_bucket(threadgroup atomic_uint* words, uint bucket, ulong x) {
  const uint low = uint(x);
  const uint before = atomic_fetch_add_explicit(words + bucket, low, memory_order_relaxed);
  const uint after = before + low;
  const uint high = uint(x >> 32) + (after < before ? 1u : 0u);
  if (high != 0)
    atomic_fetch_add_explicit(words + kRowBuckets + bucket, high, memory_order_relaxed);
}
inline ulong bucket_of(threadgroup atomic_uint* words, uint bucket) {
  return join(atomic_load_explicit(words + bucket, memory_order_relaxed),
              atomic_load_explicit(words + kRowBuckets + bucket, memory_order_relaxed));
}

// Fills the histogram of the measure over 11 bits of the keys from `shift` on.
template <typename T>
inline void fill_histogram(thread const LogitsRow<T>& row, thread const TokenMeasure& measure,
                           uint shift, RowPlace place, threadgroup atomic_uint* words) {
  const uint thread_id = 32 * place.simd_group + place.lane;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = thread_id; i < 2 * kRowBuckets; i += kRowThreads)
    atomic_store_explicit(words + i, 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint quad = thread_id; quad < num_quads_of(row); quad += kRowThreads) {
    const uint4 bits = load_quad(row, quad);
    for (uint i = 0; i < 4; ++i) {
      const ulong x = measure_of(measure, bits[i], 4 * quad + i);
      if (x == 0) continue;
      add_to_bucket(words, (key_of(bits[i]) >> shift) & (kRowBuckets - 1), x);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Finds the bucket in which the sum, highest bucket first, reaches `target`. Subtracts the buckets
// above it from `target`. Returns the bucket, or kRowBuckets if there is none.
inline uint cross_histogram(thread ulong& target, RowPlace place, threadgroup atomic_uint* words,
                            threadgroup uint* scratch) {
  // Each thread takes two buckets.
  const uint upper = kRowBuckets - 1 - 2 * (32 * place.simd_group + place.lane);
  const ulong of_upper = bucket_of(words, upper);
  const ulong sum = of_upper + bucket_of(words, upper - 1);
  const ulong in_simd = prefix_sum_long(sum);
  const ulong of_groups =
      prefix_sum_long(share_among_groups(shuffle_long(in_simd, 31), place, scratch));
  ulong before = in_simd - sum;
  const ulong of_earlier = shuffle_long(of_groups, place.simd_group > 0 ? place.simd_group - 1 : 0);
  if (place.simd_group > 0) before += of_earlier;
  const bool is_reached = shuffle_long(of_groups, 31) >= target;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (!is_reached && place.simd_group == 0 && place.lane == 0) scratch[0] = kRowBuckets;
  if (before < target && target - before <= sum) {
    const bool is_upper = target - before <= of_upper;
    const ulong left = target - before - (is_upper ? 0 : of_upper);
    scratch[0] = is_upper ? upper : upper - 1;
    scratch[1] = uint(left);
    scratch[2] = uint(left >> 32);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint bucket = scratch[0];
  if (bucket < kRowBuckets) target = join(scratch[1], scratch[2]);
  return bucket;
}

// Returns the threshold at which the sum of the measure reaches `target`, which is positive.
// histogram: kRowHistogramBytes
template <typename T>
inline RowThreshold threshold_of(thread const LogitsRow<T>& row, TokenMeasure measure, ulong target,
                                 RowPlace place, threadgroup uint* scratch,
                                 threadgroup uint* histogram) {
  threadgroup atomic_uint* const words = (threadgroup atomic_uint*)histogram;
  RowThreshold threshold;
  threshold.key = 0;
  threshold.is_reached = true;
  for (uint digit = 0; digit < 3 && threshold.is_reached; ++digit) {
    const uint num_low_bits = digit == 0 ? 21 : digit == 1 ? 10 : 0;  // 11, 11 and 10 bits
    fill_histogram(row, measure, num_low_bits, place, words);
    const uint bucket = cross_histogram(target, place, words, scratch);
    threshold.is_reached = bucket < kRowBuckets;
    threshold.key |= bucket << num_low_bits;  // the last bucket has a bit of the digit before, too
    measure.least = max(measure.least, threshold.key);
    measure.most = min(measure.most, threshold.key | ((1u << num_low_bits) - 1));
  }
  threshold.left = target;
  return threshold;
}

#endif  // PAGODA_LOGITS_ROW_METAL_H
