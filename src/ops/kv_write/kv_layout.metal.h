// The layout of entries in a KV cache (batch/kv_view.h), and in the registers of a SIMD group that
// rotates one (quant/kv_rotation.h). Register i of a lane has dimension 32 * i + lane, or zero past
// the end.
#ifndef PAGODA_KV_LAYOUT_METAL_H
#define PAGODA_KV_LAYOUT_METAL_H

// Traits of a cache's element type T: a char is a code of 8 bits, a uchar two codes of 4 bits.
template <typename T>
struct KvElement {
  enum { kNumScales = 0, kBits = 8 * sizeof(T) };
};
template <>
struct KvElement<char> {
  enum { kNumScales = 1, kBits = 8 };
};
template <>
struct KvElement<uchar> {
  enum { kNumScales = 2, kBits = 4 };
};

// The extents of an entry.
template <typename T, int kHeadDim>
struct KvEntry {
  enum {
    kIsCoded = int(KvElement<T>::kNumScales) > 0,
    kElements = kHeadDim * int(KvElement<T>::kBits) / (8 * int(sizeof(T))),
    kWidth = kHeadDim & -kHeadDim,  // width of the rotation
    kRegisters = (kHeadDim + 31) / 32
  };
};

// The place of an entry in a cache.
struct KvPlace {
  int slot;
  int block_size;
  int kv_heads;
  int kv_head;
};

inline size_t entry_number(KvPlace place) {
  return size_t(place.slot) * place.kv_heads + place.kv_head;
}

// Returns the index of an entry's first scale in [blocks, kv_heads, num_scales, block_size].
inline size_t scale_number(KvPlace place, int num_scales) {
  const size_t head = size_t(place.slot / place.block_size) * place.kv_heads + place.kv_head;
  return head * num_scales * place.block_size + place.slot % place.block_size;
}

// Returns the value of a scale, which is a bfloat16.
inline float kv_scale_value(uint bits) {
  return as_type<float>(bits << 16);
}

// Rotates an entry. A butterfly is a sum and a difference, in the order of quant/kv_rotation.h.
template <int kHeadDim>
inline void rotate_entry(thread float* x, int lane) {
  constexpr int kWidth = KvEntry<char, kHeadDim>::kWidth;
  constexpr int kRegisters = KvEntry<char, kHeadDim>::kRegisters;
#pragma unroll
  for (int far = 1; far < kWidth && far < 32; far *= 2) {
    const bool is_upper = (lane & far) != 0;
#pragma unroll
    for (int i = 0; i < kRegisters; ++i) {
      const float other = simd_shuffle_xor(x[i], far);
      x[i] = is_upper ? other - x[i] : x[i] + other;
    }
  }
#pragma unroll
  for (int far = 1; far < kWidth / 32; far *= 2) {
#pragma unroll
    for (int i = 0; i < kRegisters; ++i) {
      if ((i & far) == 0) {
        const float a = x[i];
        const float b = x[i + far];
        x[i] = a + b;
        x[i + far] = a - b;
      }
    }
  }
}

#endif  // PAGODA_KV_LAYOUT_METAL_H
