// Writes runs of an entry's elements in a cache's type: the bits of core/half.h, also of NaNs.
#ifndef PAGODA_KV_ENTRY_METAL_H
#define PAGODA_KV_ENTRY_METAL_H

#include "ops/rms_norm/float_run.metal.h"

// Returns the bits of a float32, rounded to T (nearest even).
template <typename T>
inline uint narrowed(uint bits);

template <>
inline uint narrowed<bfloat>(uint bits) {
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return is_nan ? (bits >> 16) | 0x40u : rounded;
}

template <>
inline uint narrowed<half>(uint bits) {
  const uint sign = (bits >> 16) & 0x8000u;
  const uint magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds to infinity
  // A subnormal or zero: adding 0.5 puts the wanted bits, rounded, into the low mantissa.
  const uint shifted = as_type<uint>(as_type<float>(magnitude) + 0.5f);
  if (magnitude < 0x38800000u) return sign | (shifted - 0x3f000000u);
  return sign | ((magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13);
}

// Writes kCount elements: 1, 2, 4 or 8. The address is a multiple of their total size, or of 16
// bytes if they are larger.
template <int kCount, typename T>
inline void store_entry(thread const float* from, device T* to) {
  if (kCount == 1) {
    *(device ushort*)(to) = ushort(narrowed<T>(as_type<uint>(from[0])));
    return;
  }
  uint words[4];
  for (int i = 0; i < kCount / 2; ++i) {
    words[i] = narrowed<T>(as_type<uint>(from[2 * i])) |
               (narrowed<T>(as_type<uint>(from[2 * i + 1])) << 16);
  }
  if (kCount == 2) *(device uint*)(to) = words[0];
  if (kCount == 4) {
    uint2 both;
    both.x = words[0];
    both.y = words[1];
    *(device uint2*)(to) = both;
  }
  if (kCount == 8) {
    uint4 all;
    all.x = words[0];
    all.y = words[1];
    all.z = words[2];
    all.w = words[3];
    *(device uint4*)(to) = all;
  }
}
template <int kCount>
inline void store_entry(thread const float* from, device float* to) {
  store_run<kCount>(from, to);
}

#endif  // PAGODA_KV_ENTRY_METAL_H
