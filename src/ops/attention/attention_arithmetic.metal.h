// The arithmetic of attention, which attention_decode, attention_merge and attention_prompt share
// bit for bit, and how entries are read.
//
// An entry (a head's key or value) is read in pieces of 16 bytes, or of eight codes. In
// attention_decode a SIMD group reads kKeysAtOnce keys at once, with kLanesPerKey lanes per key. A
// lane has one piece, or kPiecesPerLane pieces of long entries. This gives the orders of sums,
// which attention_prompt keeps:
// - A score: a lane's pieces are one chain of fma, in ascending order. Then the lanes' sums are
//   added in a tree that folds halves, the farthest lanes first. Then come the scale and the soft
//   cap.
// - A tile (32 keys at absolute positions): its largest score, the weights exp(score - largest),
//   their sum in such a tree, and the weighted sum of values. Values are summed in chunks of
//   kKeysPerLane * kKeysAtOnce keys, whose sums are added in ascending order. In a chunk, every
//   kKeysAtOnce-th key is in one chain of fma, ascending, and the chains are folded, too. For a key
//   that is not seen, a chain adds zero.
// - Tiles with a key that is seen are joined in ascending order to the state of a partition (512
//   keys at absolute positions), which begins empty. Partitions are joined likewise to the state of
//   the query.
// - Last come the sink, one more logit, and then one division.
// Codes are decoded as they are read, so that all of this is on floats: a number is scale * code,
// or fma(scale, code, minimum). Codes are of rotated entries. So a query is rotated before it is
// multiplied with keys, and the quotient of values is rotated back, times 1 / width. The rotations
// of a query and a key multiply their product by the width, so the launch divides the scale by it.
#ifndef PAGODA_ATTENTION_ARITHMETIC_METAL_H
#define PAGODA_ATTENTION_ARITHMETIC_METAL_H

#include "ops/attention/attention_metal.h"
#include "ops/kv_write/kv_layout.metal.h"

// A piece of an entry.
template <typename T>
struct AttentionPiece {
  typedef uint4 Bits;
  enum { kValues = 16 / sizeof(T) };
};
template <>
struct AttentionPiece<char> {
  typedef uint2 Bits;
  enum { kValues = 8 };
};
// Four bytes: their low nibbles, then their high nibbles, whose dimensions are kDim / 2 further on.
template <>
struct AttentionPiece<uchar> {
  typedef uint Bits;
  enum { kValues = 8 };
};

template <typename T, int kDim>
struct AttentionLayout {
  enum {
    kIsSplit = int(KvElement<T>::kBits) == 4,
    kPieceValues = AttentionPiece<T>::kValues,
    kPieces =
        int(kIsSplit) ? (kDim / 2 + 3) / 4 : (kDim + int(kPieceValues) - 1) / int(kPieceValues),
    kPaddedDim = int(kPieces) * int(kPieceValues),
    kLanesPerKey = int(kPieces) > 16  ? 32
                   : int(kPieces) > 8 ? 16
                                      : 8,
    kKeysAtOnce = 32 / int(kLanesPerKey),
    kPiecesPerLane = (int(kPieces) + int(kLanesPerKey) - 1) / int(kLanesPerKey),
    kKeysPerLane = int(kPiecesPerLane) == 1   ? 8
                   : int(kPiecesPerLane) == 2 ? 4
                                              : 2,
    kChunkKeys = int(kKeysPerLane) * int(kKeysAtOnce)
  };
};

// Returns the place of a dimension among the values of an entry's pieces.
template <typename T, int kDim>
inline int place_of_dim(int d) {
  if (!AttentionLayout<T, kDim>::kIsSplit) return d;
  const bool is_high = d >= kDim / 2;
  const int low = is_high ? d - kDim / 2 : d;
  return low / 4 * 8 + (is_high ? 4 : 0) + low % 4;
}

// Returns the dimension at a place; kDim or more if there is none.
template <typename T, int kDim>
inline int dim_at_place(int place) {
  if (!AttentionLayout<T, kDim>::kIsSplit) return place;
  const int low = place / 8 * 4 + place % 4;
  if (low >= kDim / 2) return kDim;
  return place % 8 >= 4 ? low + kDim / 2 : low;
}

// Returns up to four bytes as a word: [first, end) of an array.
inline uint load_bytes(device const uchar* bytes, int first, int end) {
  uint word = 0;
  for (int i = 0; i < 4; ++i) {
    if (first + i < end) word |= uint(bytes[first + i]) << (8 * i);
  }
  return word;
}

// Reads a piece of an entry, in one load if entries consist of whole pieces. Values past the end
// are zero.
template <int kDim, typename T>
inline uint4 load_piece(device const T* entry, int piece) {
  constexpr int kValues = 16 / sizeof(T);
  if (kDim % kValues == 0) return *(device const uint4*)(entry + piece * kValues);
  uint words[4];
  for (int i = 0; i < 4; ++i) {
    words[i] = 0;
    if (sizeof(T) == 4) {
      const int d = piece * 4 + i;
      if (d < kDim) words[i] = ((device const uint*)entry)[d];
    } else {
      const int d = piece * 8 + i * 2;
      if (d < kDim) words[i] = ((device const ushort*)entry)[d];
      if (d + 1 < kDim) words[i] |= uint(((device const ushort*)entry)[d + 1]) << 16;
    }
  }
  uint4 bits;
  bits.x = words[0];
  bits.y = words[1];
  bits.z = words[2];
  bits.w = words[3];
  return bits;
}
template <int kDim>
inline uint2 load_piece(device const char* entry, int piece) {
  if (kDim % 8 == 0) return *(device const uint2*)(entry + piece * 8);
  uint2 bits;
  bits.x = load_bytes((device const uchar*)entry, piece * 8, kDim);
  bits.y = load_bytes((device const uchar*)entry, piece * 8 + 4, kDim);
  return bits;
}
template <int kDim>
inline uint load_piece(device const uchar* entry, int piece) {
  if (kDim % 8 == 0) return *(device const uint*)(entry + piece * 4);
  return load_bytes(entry, piece * 4, kDim / 2);
}

inline void clear_piece(thread uint4& bits) {
  bits.x = 0;
  bits.y = 0;
  bits.z = 0;
  bits.w = 0;
}
inline void clear_piece(thread uint2& bits) {
  bits.x = 0;
  bits.y = 0;
}
inline void clear_piece(thread uint& bits) {
  bits = 0;
}

// Reads a piece of an entry. entry: its number among those of all heads (entry_of), or -1 for a key
// that no row sees, which gives zeros.
template <typename T, int kDim>
inline typename AttentionPiece<T>::Bits load_seen_piece(device const T* entries, int entry,
                                                        int piece) {
  typename AttentionPiece<T>::Bits bits;
  clear_piece(bits);
  if (entry >= 0 && piece < AttentionLayout<T, kDim>::kPieces)
    bits = load_piece<kDim>(entries + size_t(entry) * KvEntry<T, kDim>::kElements, piece);
  return bits;
}

template <typename T>
inline void widen_pair(uint bits, thread float* to);
template <>
inline void widen_pair<bfloat>(uint bits, thread float* to) {
  to[0] = as_type<float>(bits << 16);
  to[1] = as_type<float>(bits & 0xffff0000u);
}
template <>
inline void widen_pair<half>(uint bits, thread float* to) {
  to[0] = float(as_type<half>(ushort(bits & 0xffffu)));
  to[1] = float(as_type<half>(ushort(bits >> 16)));
}
template <>
inline void widen_pair<float>(uint, thread float*) {}  // not called

// Returns x - zero for x below 2^23, in two cheap steps. A conversion takes GPUs several.
inline float small_number(uint x, float zero) {
  return as_type<float>(0x4b000000u | x) - (8388608.0f + zero);
}

// Widens the values of a piece. scales: for codes, the bits of the entry's scale in the low half
// and of its minimum in the high half.
template <typename T>
inline void widen_piece(uint4 bits, uint, thread float* to) {
  if (sizeof(T) == 4) {
    to[0] = as_type<float>(bits.x);
    to[1] = as_type<float>(bits.y);
    to[2] = as_type<float>(bits.z);
    to[3] = as_type<float>(bits.w);
  } else {
    widen_pair<T>(bits.x, to);
    widen_pair<T>(bits.y, to + 2);
    widen_pair<T>(bits.z, to + 4);
    widen_pair<T>(bits.w, to + 6);
  }
}
template <typename T>
inline void widen_piece(uint2 bits, uint scales, thread float* to) {
  const float scale = kv_scale_value(scales);
  const uint low = bits.x ^ 0x80808080u;  // codes plus 128
  const uint high = bits.y ^ 0x80808080u;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    to[i] = small_number((low >> (8 * i)) & 0xffu, 128.0f) * scale;
    to[4 + i] = small_number((high >> (8 * i)) & 0xffu, 128.0f) * scale;
  }
}
template <typename T>
inline void widen_piece(uint bits, uint scales, thread float* to) {
  const float scale = kv_scale_value(scales & 0xffffu);
  const float minimum = kv_scale_value(scales >> 16);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    to[i] = fma(small_number((bits >> (8 * i)) & 0xfu, 0.0f), scale, minimum);
    to[4 + i] = fma(small_number((bits >> (8 * i + 4)) & 0xfu, 0.0f), scale, minimum);
  }
}

// Adds kCount values over lanes by folding: first lanes that are kFar / 2 apart, last lanes that
// are kNear apart, all powers of two. While several values are left, a step divides them between
// both lanes. In the end, a lane has the sums of kCount / (kFar / kNear) values, but at least one.
// values[0] is the sum of value number first_folded(); the next sums follow it.
template <int kCount, int kFar, int kNear>
inline void fold_lanes(thread float* values, int lane) {
  int count = kCount;
#pragma unroll
  for (int mask = kFar / 2; mask >= kNear; mask /= 2) {
    if (count > 1) {
      count /= 2;
      const bool is_upper = (lane & mask) != 0;
#pragma unroll
      for (int i = 0; i < kCount / 2; ++i) {
        if (i < count) {
          // Selects numbers. A selection of indices would put the array into memory.
          const float low = values[i];
          const float high = values[i + count];
          const float kept = is_upper ? high : low;
          const float sent = is_upper ? low : high;
          values[i] = kept + simd_shuffle_xor(sent, mask);
        }
      }
    } else {
      values[0] = values[0] + simd_shuffle_xor(values[0], mask);
    }
  }
}

template <int kCount, int kFar, int kNear>
inline int first_folded(int lane) {
  constexpr int kLanes = kFar / kNear;
  const int place = lane % kFar / kNear;
  return kCount >= kLanes ? place * (kCount / kLanes) : place / (kLanes / kCount);
}

// Folds kCount values of one thread in the same order.
template <int kCount>
inline void fold_values(thread float* values) {
#pragma unroll
  for (int half_count = kCount / 2; half_count > 0; half_count /= 2) {
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
      if (i < half_count) values[i] = values[i] + values[i + half_count];
    }
  }
}

// Returns a score from its sum of products.
inline float score_of(float product, float scale, float soft_cap) {
  const float score = product * scale;
  return soft_cap > 0.0f ? soft_cap * precise::tanh(score / soft_cap) : score;
}

// The state of a softmax after some keys, without the weighted sum of their values.
struct AttentionState {
  float largest;
  float sum;  // the sum of exp(score - largest)
};

// The factors by which the sums of two states are multiplied when the states are joined.
struct AttentionFactors {
  float kept;
  float added;
};

inline AttentionState empty_state() {
  AttentionState state;
  state.largest = -INFINITY;
  state.sum = 0.0f;
  return state;
}

inline float join_value(AttentionFactors factors, float value, float added) {
  return fma(added, factors.added, value * factors.kept);
}

// Joins later keys, whose largest score and sum are given, to a state.
inline AttentionFactors join_state(thread AttentionState& state, float largest, float sum) {
  const float both = max(state.largest, largest);
  AttentionFactors factors;
  factors.kept = precise::exp(state.largest - both);
  factors.added = precise::exp(largest - both);
  state.largest = both;
  state.sum = join_value(factors, state.sum, sum);
  return factors;
}

// Writes the factors with which `count` states are joined, in order, to the state `before`.
// join_state() would find the same factors, but here no state waits for another. Thread i computes
// numbers i, i + num_threads, ... of [count, num_heads]. states, factors [count, num_heads, 2];
// before [num_heads, 2]
inline void find_factors(threadgroup const float* states, int count, int num_heads,
                         threadgroup const float* before, int thread_index, int num_threads,
                         threadgroup float* factors) {
#pragma unroll 1
  for (int i = thread_index; i < count * num_heads; i += num_threads) {
    float earlier = before[i % num_heads * 2];
#pragma unroll 8
    for (int j = i % num_heads; j < i; j += num_heads) earlier = max(earlier, states[j * 2]);
    const float largest = states[i * 2];
    const float both = max(earlier, largest);
    factors[i * 2] = precise::exp(earlier - both);
    factors[i * 2 + 1] = precise::exp(largest - both);
  }
}

inline AttentionFactors factors_at(threadgroup const float* from) {
  AttentionFactors factors;
  factors.kept = from[0];
  factors.added = from[1];
  return factors;
}

// Joins the values (or sums) of `count` states to `value` with such factors.
inline float join_values(threadgroup const float* factors, int factor_stride,
                         threadgroup const float* added, int stride, int count, float value) {
#pragma unroll 8
  for (int i = 0; i < count; ++i) {
    value = join_value(factors_at(factors + i * factor_stride), value, added[i * stride]);
  }
  return value;
}

// Returns the attention of a query whose keys are all joined: joins the sink, whose value is zero,
// and divides.
inline float finish_value(AttentionState state, float value, bool has_sink, float sink) {
  if (!has_sink) return value / state.sum;
  const float both = max(state.largest, sink);
  const float kept = precise::exp(state.largest - both);
  return value * kept / fma(state.sum, kept, precise::exp(sink - both));
}

// Returns the attention of a query whose keys are all in one partition. total: the largest score,
// and the sum of weights.
inline float whole_value(float value, threadgroup const float* total, bool has_sink,
                         device const float* sink) {
  AttentionState state = empty_state();
  const AttentionFactors factors = join_state(state, total[0], total[1]);
  return finish_value(state, join_value(factors, 0.0f, value), has_sink, has_sink ? *sink : 0.0f);
}

// A query, and the keys that it sees: [first, position].
struct AttentionQuery {
  int token;  // -1: none
  int seq;
  int first;
  int position;
};

inline int first_key(int position, int window) {
  return window > 0 ? max(position - window + 1, 0) : 0;
}

// The places of a sequence's keys in the cache. The number of entries, slots times heads, fits into
// an int: an entry and its scales have at least 16 bytes, except in toy models.
struct AttentionTable {
  device const int* blocks;
  int first_slot;  // -1: the sequence's blocks are not consecutive
  int block_size;
  int kv_heads;
  int kv_head;
};

// Returns the block of a key, for entry_of(). Nothing waits for this load before entry_of().
inline int block_of(AttentionTable table, int key, bool is_seen) {
  int block = 0;
  if (is_seen && table.first_slot < 0) block = table.blocks[key / table.block_size];
  return block;
}

inline int slot_of(AttentionTable table, int block, int key) {
  return table.first_slot >= 0 ? table.first_slot + key
                               : block * table.block_size + key % table.block_size;
}

// Returns the number of head 0's entry of a key; -1 if the key is not seen.
inline int entry_of(AttentionTable table, int block, int key, bool is_seen) {
  return is_seen ? slot_of(table, block, key) * table.kv_heads : -1;
}

// Returns the scales of a key as widen_piece() takes them. Does not read the scales of a key that
// is not seen.
template <typename T>
inline uint scales_of(AttentionTable table, int block, int key, bool is_seen,
                      device const ushort* scales) {
  constexpr int kNumScales = KvElement<T>::kNumScales;
  uint bits = 0;
  if (kNumScales > 0 && is_seen) {
    KvPlace place;
    place.slot = slot_of(table, block, key);
    place.block_size = table.block_size;
    place.kv_heads = table.kv_heads;
    place.kv_head = table.kv_head;
    const size_t number = scale_number(place, kNumScales);
    bits = scales[number];
    if (kNumScales > 1) bits |= uint(scales[number + table.block_size]) << 16;
  }
  return bits;
}

#endif  // PAGODA_ATTENTION_ARITHMETIC_METAL_H
