// Writes entries to a KV cache, one SIMD group per entry: as numbers, or as the codes and scales
// that quant/kv_int8.h and quant/kv_int4.h define, bit for bit.
//
// An entry is in registers in the layout of kv_layout.metal.h, not yet rotated. The scales of a
// head's consecutive positions are adjacent. The minimum of an int4 entry is block_size elements
// after its scale.
#ifndef PAGODA_KV_CODES_METAL_H
#define PAGODA_KV_CODES_METAL_H

#include "ops/kv_write/kv_entry.metal.h"
#include "ops/kv_write/kv_layout.metal.h"

// Returns 1 / scale, computed with integers as in quant/kv_scale.h. Scales are positive.
inline float kv_reciprocal(uint scale) {
  const uint quotient = (1u << 30) / (0x80u | (scale & 0x7fu));
  return as_type<float>(as_type<uint>(float(quotient)) + ((104u - (scale >> 7)) << 23));
}

// Rotates an entry; numbers below 2^-60 count as 0. Returns the bits of the largest magnitude. Bits
// are ordered like the magnitudes, and NaNs are the largest.
template <int kHeadDim>
inline uint rotate_counted(thread float* x, int lane) {
  constexpr int kRegisters = KvEntry<char, kHeadDim>::kRegisters;
#pragma unroll
  for (int i = 0; i < kRegisters; ++i) x[i] = fabs(x[i]) < 0x1p-60f ? 0.0f : x[i];
  rotate_entry<kHeadDim>(x, lane);
  uint largest = 0;
#pragma unroll
  for (int i = 0; i < kRegisters; ++i) largest = max(largest, as_type<uint>(x[i]) & 0x7fffffffu);
  return simd_max(largest);
}

// Writes an entry as numbers of a type without scales (KvElement).
template <int kHeadDim, typename T>
inline void write_entry(thread float* x, int lane, KvPlace place, device T* elements,
                        device ushort*) {
  device T* const entry = elements + entry_number(place) * kHeadDim;
#pragma unroll
  for (int i = 0; i < KvEntry<T, kHeadDim>::kRegisters; ++i) {
    const int d = i * 32 + lane;
    if (d < kHeadDim) store_entry<1>(x + i, entry + d);
  }
}

template <int kHeadDim>
inline void write_entry(thread float* x, int lane, KvPlace place, device char* elements,
                        device ushort* scales) {
  device char* const codes = elements + entry_number(place) * kHeadDim;
  const uint largest = rotate_counted<kHeadDim>(x, lane);
  const bool is_finite = largest < 0x7f800000u;
  uint scale = is_finite ? 0u : 0x7fc0u;
  if (is_finite && largest > 0)
    scale = (as_type<uint>(as_type<float>(largest) * (1.0f / 127.0f)) + 0xffffu) >> 16;
  const bool has_codes = is_finite && largest > 0;
  const float reciprocal = has_codes ? kv_reciprocal(scale) : 0.0f;
#pragma unroll
  for (int i = 0; i < KvEntry<char, kHeadDim>::kRegisters; ++i) {
    const int d = i * 32 + lane;
    const float code = has_codes ? clamp(rint(x[i] * reciprocal), -127.0f, 127.0f) : 0.0f;
    if (d < kHeadDim) codes[d] = char(int(code));
  }
  if (lane == 0) scales[scale_number(place, 1)] = ushort(scale);
}

template <int kHeadDim>
inline void write_entry(thread float* x, int lane, KvPlace place, device uchar* elements,
                        device ushort* scales) {
  constexpr int kRegisters = KvEntry<uchar, kHeadDim>::kRegisters;
  constexpr int kHalf = kHeadDim / 2;
  constexpr int kHighLane = kHalf % 32;  // lane and register that have lane 0's high code
  constexpr int kHighRegister = kHalf / 32;
  device uchar* const codes = elements + entry_number(place) * kHalf;
  bool is_finite = rotate_counted<kHeadDim>(x, lane) < 0x7f800000u;
  float least = INFINITY;
  float most = -INFINITY;
#pragma unroll
  for (int i = 0; i < kRegisters; ++i) {
    const bool is_inside = i * 32 + lane < kHeadDim;
    least = is_inside ? min(least, x[i]) : least;
    most = is_inside ? max(most, x[i]) : most;
  }
  least = simd_min(least);
  most = simd_max(most);
  uint minimum = least == 0.0f ? 0u : narrowed<bfloat>(as_type<uint>(least));
  const float bottom = kv_scale_value(minimum);
  const float span = most - bottom;
  is_finite = is_finite && isfinite(bottom) && isfinite(span);
  const bool has_codes = is_finite && span > 0.0f;
  uint scale = 0;
  if (has_codes) scale = narrowed<bfloat>(as_type<uint>(span * (1.0f / 15.0f)));
  const float reciprocal = has_codes ? kv_reciprocal(scale) : 0.0f;
  int own[kRegisters + 1];  // one more: a lane may read one past the last register
  own[kRegisters] = 0;
#pragma unroll
  for (int i = 0; i < kRegisters; ++i) {
    own[i] = has_codes ? int(clamp(rint((x[i] - bottom) * reciprocal), 0.0f, 15.0f)) : 0;
  }
#pragma unroll
  for (int i = 0; i < (kHalf + 31) / 32; ++i) {
    int high = own[i + kHighRegister];
    if (kHighLane > 0) {
      const int from = (lane + kHighLane) % 32;
      const int first = simd_shuffle(high, from);
      const int second = simd_shuffle(own[min(i + kHighRegister + 1, kRegisters)], from);
      high = lane + kHighLane < 32 ? first : second;
    }
    if (i * 32 + lane < kHalf) codes[i * 32 + lane] = uchar(own[i] | (high << 4));
  }
  if (lane == 0) {
    device ushort* const to = scales + scale_number(place, 2);
    to[0] = ushort(is_finite ? scale : 0x7fc0u);
    to[place.block_size] = ushort(is_finite ? minimum : 0x7fc0u);
  }
}

#endif  // PAGODA_KV_CODES_METAL_H
