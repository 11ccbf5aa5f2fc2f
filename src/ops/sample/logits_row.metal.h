// A row of logits and a threadgroup of kRowThreads threads: its largest, sums over its tokens, the
// token and the logit at which such a sum is reached.
//
// Sums are of whole numbers in 64 bits, exact in whatever order. Logits are compared as integers of
// the same order ("keys"), which tell subnormal ones apart, too, and know NaN. Nothing is sorted: a
// threshold is found by histograms over the keys' bits, likeliest bucket first, each over the bucket
// that the last one crossed in. Every function here is called by all threads of the group together,
// and returns the same to all of them but where it says otherwise.
#ifndef PAGODA_LOGITS_ROW_METAL_H
#define PAGODA_LOGITS_ROW_METAL_H

#include "backend/mlx/kernel.metal.h"
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
  bool is_aligned;  // to four logits, of which vocab is a multiple
};

// A thread's place in its threadgroup.
struct RowPlace {
  uint simd_group;
  uint lane;
};

// Returns the logit's bits as an integer of the same order; -0 and +0 are one.
inline uint key_of(uint bits) {
  if (bits == 0x80000000u) return 0x80000000u;
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
inline float logit_of(uint key) {
  return as_type<float>((key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key);
}

// Returns the bits of logits 4 * quad to 4 * quad + 3, as float32; beyond the row, those of -inf,
// which count for nothing anywhere.
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
  uint floor;  // as many logits as there are threads are at least this; 0 where they are fewer
};

inline bool is_fault(thread const LargestLogit& largest) {
  return largest.key >= kKeyOfInfinity || largest.key == kKeyOfMinusInfinity;
}
// Returns the id, or the number that stands for a token where the row has none (draw/drawn_token.h).
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

// Returns the least key of the row that is `least` or more, of which there is one.
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

// Says what a token counts in a sum: its weight, or 1; 0 where it is none of those asked for.
struct TokenMeasure {
  uint least;      // keys from this one, which is finite,
  uint most;       // to this one count
  uint last_tie;   // of tokens whose key is `least`, those up to this id
  bool is_weight;  // else 1
  Weighing weighing;
};

// Returns a measure of all tokens but those of -inf.
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

// Joins the two words of 64 bits, as which SIMD groups share them.
inline ulong join(uint low, uint high) {
  return (ulong(high) << 32) + ulong(low);
}
inline ulong shuffle_long(ulong x, uint lane) {
  const uint low = simd_shuffle(uint(x), ushort(lane));
  const uint high = simd_shuffle(uint(x >> 32), ushort(lane));
  return join(low, high);
}
// Returns the sum over all lanes, as those of three parts, which fit a word: 27 bits, 27, and 10.
inline ulong sum_long(ulong x) {
  const uint low = simd_sum(uint(x) & 0x07ffffffu);
  const uint middle = simd_sum(uint(x >> 27) & 0x07ffffffu);
  const uint high = simd_sum(uint(x >> 54));
  return ulong(low) + (ulong(middle) << 27) + (ulong(high) << 54);
}
// Returns the sum over the lanes up to this one, likewise.
inline ulong prefix_sum_long(ulong x) {
  const uint low = simd_prefix_inclusive_sum(uint(x) & 0x07ffffffu);
  const uint middle = simd_prefix_inclusive_sum(uint(x >> 27) & 0x07ffffffu);
  const uint high = simd_prefix_inclusive_sum(uint(x >> 54));
  return ulong(low) + (ulong(middle) << 27) + (ulong(high) << 54);
}
// Returns what the SIMD group has whose number is this lane's. x: the same in all lanes of a SIMD group
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

// Returns the measure of the whole row.
template <typename T>
inline ulong sum_row(thread const LogitsRow<T>& row, thread const TokenMeasure& measure,
                     RowPlace place, threadgroup uint* scratch) {
  const uint size = segment_of(num_quads_of(row));
  const uint begin = place.simd_group * size;
  const ulong sum =
      sum_quads(row, measure, begin, min(begin + size, num_quads_of(row)), place.lane);
  return sum_long(share_among_groups(sum, place, scratch));
}

// Returns the first id up to which the measure is more than `amount`, or, where `is_share`, more
// than share_of(the whole row's, amount). REQUIRES: there is one.
template <typename T>
inline uint first_beyond(thread const LogitsRow<T>& row, TokenMeasure measure, ulong amount,
                         bool is_share, RowPlace place, threadgroup uint* scratch) {
  uint begin = 0;
  uint end = num_quads_of(row);
  // Gives each SIMD group a segment; the one that crosses becomes the whole, until it is a quad a lane.
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
  ulong left = amount - (reached - sum);  // of use where this lane crosses
  uint id = 4 * quad;
  for (uint i = 0; i < 3; ++i) {
    const ulong of_token = measure_of(measure, bits[i], 4 * quad + i);
    if (of_token > left) break;
    left -= of_token;
    ++id;
  }
  return simd_shuffle(id, ushort(crossing));
}

// The end of the shortest prefix of the row's tokens, largest logit first, whose measure reaches
// what was asked for.
struct RowThreshold {
  uint key;         // of the last logit
  ulong left;       // what the tokens of this key must add; at least 1
  bool is_reached;  // else all tokens together do not reach it
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

// Finds the bucket in which the sum, highest bucket first, reaches `target`, and takes what lies
// above it from `target`. Returns it, or kRowBuckets where there is none.
inline uint cross_histogram(thread ulong& target, RowPlace place, threadgroup atomic_uint* words,
                            threadgroup uint* scratch) {
  // Two buckets a thread.
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

// Returns the threshold at which the measure reaches `target`, which is positive.
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
    threshold.key |= bucket << num_low_bits;  // the last digit has a bit of the one before, too
    measure.least = max(measure.least, threshold.key);
    measure.most = min(measure.most, threshold.key | ((1u << num_low_bits) - 1));
  }
  threshold.left = target;
  return threshold;
}

#endif  // PAGODA_LOGITS_ROW_METAL_H
