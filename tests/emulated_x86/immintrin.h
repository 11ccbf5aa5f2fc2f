// AVX-512's and AMX's intrinsics as plain C++, in place of the compiler's. A kernel's file,
// compiled with this folder first in the include path, runs anywhere, with the bits of a processor
// that has these instructions. After Intel's Software Developer's Manual, volume 2; only what the
// kernels use.
#pragma once

#include_next <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "tests/emulated_x86/emulated_tiles.h"

namespace emulated {

using Vector = __m512i;
using Floats = __m512;
using S8 = std::int8_t __attribute__((vector_size(64)));
using U8 = std::uint8_t __attribute__((vector_size(64)));
using S16 = std::int16_t __attribute__((vector_size(64)));
using U16 = std::uint16_t __attribute__((vector_size(64)));
using S32 = std::int32_t __attribute__((vector_size(64)));
using U32 = std::uint32_t __attribute__((vector_size(64)));
using S64 = std::int64_t __attribute__((vector_size(64)));

// Makes a vector whose lane i is lane(i).
template <class To, class Lane, class Function>
To made_of(const Function& lane) {
  constexpr int kCount = sizeof(To) / sizeof(Lane);
  Lane lanes[kCount];
  for (int i = 0; i < kCount; ++i) lanes[i] = static_cast<Lane>(lane(i));
  To to;
  std::memcpy(&to, lanes, sizeof(to));
  return to;
}
// Returns lane i of a vector.
template <class Lane, class From>
Lane lane_of(const From& vector, int i) {
  Lane lane;
  std::memcpy(&lane, reinterpret_cast<const char*>(&vector) + i * sizeof(Lane), sizeof(Lane));
  return lane;
}
inline bool is_set(unsigned mask, int i) {
  return (mask >> i & 1) != 0;
}

template <class T>
T load(const void* from) {
  T to;
  std::memcpy(&to, from, sizeof(to));
  return to;
}
template <class T>
void store(void* to, const T& vector) {
  std::memcpy(to, &vector, sizeof(vector));
}
inline Floats maskz_load_ps(unsigned mask, const void* from) {
  return made_of<Floats, float>(
      [&](int i) { return is_set(mask, i) ? static_cast<const float*>(from)[i] : 0.0f; });
}
inline void mask_storeu_ps(void* to, unsigned mask, Floats a) {
  for (int i = 0; i < 16; ++i) {
    if (is_set(mask, i)) static_cast<float*>(to)[i] = a[i];
  }
}

// Floats.
inline Floats set1_ps(float a) {
  return Floats{} + a;
}
inline Floats abs_ps(Floats a) {
  return (Floats)((U32)a & 0x7fffffffu);
}
inline Floats fmadd_ps(Floats a, Floats b, Floats c) {
  return made_of<Floats, float>([&](int i) { return std::fma(a[i], b[i], c[i]); });
}
inline Floats max_ps(Floats a, Floats b) {
  return made_of<Floats, float>([&](int i) { return a[i] > b[i] ? a[i] : b[i]; });
}
inline Floats maskz_div_ps(unsigned mask, Floats a, Floats b) {
  return made_of<Floats, float>([&](int i) { return is_set(mask, i) ? a[i] / b[i] : 0.0f; });
}
inline unsigned cmp_ps_mask(Floats a, Floats b, int predicate) {
  unsigned mask = 0;
  for (int i = 0; i < 16; ++i) {
    const bool holds = predicate == _CMP_GT_OQ   ? a[i] > b[i]
                       : predicate == _CMP_LE_OQ ? a[i] <= b[i]
                                                 : !std::isunordered(a[i], b[i]);
    mask |= static_cast<unsigned>(holds) << i;
  }
  return mask;
}
inline Floats getexp_ps(Floats a) {
  return made_of<Floats, float>([&](int i) { return std::logb(a[i]); });
}
// Returns a * 2^floor(b), rounded once.
inline float scaled(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (std::isinf(b)) return b > 0 ? a * INFINITY : a * 0.0f;
  return static_cast<float>(std::ldexp(static_cast<double>(a), static_cast<int>(std::floor(b))));
}
inline Floats scalef_ps(Floats a, Floats b) {
  return made_of<Floats, float>([&](int i) { return scaled(a[i], b[i]); });
}

// Conversions round to nearest, ties to even; a value out of range becomes the smallest integer.
inline std::int32_t rounded(float value) {
  if (!(value >= -2147483648.0f && value < 2147483648.0f)) return INT32_MIN;
  return static_cast<std::int32_t>(std::nearbyintf(value));
}
inline Vector maskz_cvtps_epi32(unsigned mask, Floats a) {
  return made_of<Vector, std::int32_t>([&](int i) { return is_set(mask, i) ? rounded(a[i]) : 0; });
}
inline Vector cvtps_epi32(Floats a) {
  return maskz_cvtps_epi32(0xffff, a);
}
inline Floats cvtepi32_ps(Vector a) {
  return __builtin_convertvector((S32)a, Floats);
}
template <class Lane, class From>
Vector widened(const From& a) {
  return made_of<Vector, std::int32_t>([&](int i) { return lane_of<Lane>(a, i); });
}
inline __m256i cvtepi32_epi16(Vector a) {
  return made_of<__m256i, std::int16_t>([&](int i) { return lane_of<std::int32_t>(a, i); });
}
inline float of_half(std::uint16_t half) {
  const float sign = (half & 0x8000) != 0 ? -1.0f : 1.0f;
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}
inline Floats cvtph_ps(__m256i a) {
  return made_of<Floats, float>([&](int i) { return of_half(lane_of<std::uint16_t>(a, i)); });
}

// Integers.
inline Vector max_epi32(Vector a, Vector b) {
  return made_of<Vector, std::int32_t>([&](int i) {
    const auto x = lane_of<std::int32_t>(a, i), y = lane_of<std::int32_t>(b, i);
    return x > y ? x : y;
  });
}
inline Vector max_epu32(Vector a, Vector b) {
  return made_of<Vector, std::uint32_t>([&](int i) {
    const auto x = lane_of<std::uint32_t>(a, i), y = lane_of<std::uint32_t>(b, i);
    return x > y ? x : y;
  });
}
inline std::uint32_t reduce_max_epu32(Vector a) {
  std::uint32_t most = 0;
  for (int i = 0; i < 16; ++i) {
    const auto lane = lane_of<std::uint32_t>(a, i);
    if (lane > most) most = lane;
  }
  return most;
}
inline Vector ternarylogic_epi32(Vector a, Vector b, Vector c, int truth) {
  Vector to = {};
  for (int i = 0; i < 8; ++i) {
    if (!is_set(truth, i)) continue;
    to |= ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
  }
  return to;
}
inline Vector dpwssd_epi32(Vector sum, Vector a, Vector b) {
  const S32 low = ((S32)a << 16 >> 16) * ((S32)b << 16 >> 16);
  const S32 high = ((S32)a >> 16) * ((S32)b >> 16);
  return (Vector)((U32)sum + (U32)low + (U32)high);
}
inline Vector dpbusd_epi32(Vector sum, Vector a, Vector b) {
  return made_of<Vector, std::int32_t>([&](int i) {
    std::int32_t of_lane = lane_of<std::int32_t>(sum, i);
    for (int k = 4 * i; k < 4 * i + 4; ++k) {
      of_lane += lane_of<std::uint8_t>(a, k) * lane_of<std::int8_t>(b, k);
    }
    return of_lane;
  });
}

// Narrows lanes with saturation: in each 128 bits first a's lanes, then b's.
template <class From, class To>
Vector packs(Vector a, Vector b) {
  constexpr int kFrom = 16 / sizeof(From);  // lanes in 128 bits
  return made_of<Vector, To>([&](int i) {
    const int part = i / (2 * kFrom), at = i % (2 * kFrom);
    const auto lane = lane_of<From>(at < kFrom ? a : b, part * kFrom + at % kFrom);
    constexpr From kMost = (From{1} << (8 * sizeof(To) - 1)) - 1;
    return lane > kMost ? kMost : lane < -kMost - 1 ? -kMost - 1 : lane;
  });
}
template <class Lane, bool kIsHigh>
Vector unpacked(Vector a, Vector b) {
  constexpr int kLanes = 16 / sizeof(Lane);
  return made_of<Vector, Lane>([&](int i) {
    const int from = i / kLanes * kLanes + i % kLanes / 2 + (kIsHigh ? kLanes / 2 : 0);
    return lane_of<Lane>(i % 2 == 0 ? a : b, from);
  });
}
template <class Lane>
Vector permutexvar(Vector order, Vector a) {
  constexpr int kLanes = 64 / sizeof(Lane);
  return made_of<Vector, Lane>(
      [&](int i) { return lane_of<Lane>(a, lane_of<Lane>(order, i) & (kLanes - 1)); });
}
inline Vector permutex2var_epi16(Vector a, Vector order, Vector b) {
  return made_of<Vector, std::int16_t>([&](int i) {
    const int from = lane_of<std::int16_t>(order, i);
    return lane_of<std::int16_t>((from & 32) != 0 ? b : a, from & 31);
  });
}
inline Vector shuffle_epi32(Vector a, int order) {
  return made_of<Vector, std::int32_t>(
      [&](int i) { return lane_of<std::int32_t>(a, i / 4 * 4 + (order >> 2 * (i % 4) & 3)); });
}
// Selects two quarters of a, then two of b.
inline Vector shuffle_quarters(Vector a, Vector b, int order) {
  return made_of<Vector, std::int64_t>([&](int i) {
    return lane_of<std::int64_t>(i < 4 ? a : b, 2 * (order >> 2 * (i / 2) & 3) + i % 2);
  });
}
inline __m256i half_of(Vector a, int half) {
  return made_of<__m256i, std::int64_t>([&](int i) { return a[4 * half + i]; });
}

}  // namespace emulated

// These macros take no parameters, so that arguments may contain commas.
#undef _mm512_maskz_load_ps
#define _mm512_maskz_load_ps emulated::maskz_load_ps
#undef _mm512_mask_storeu_ps
#define _mm512_mask_storeu_ps emulated::mask_storeu_ps
#undef _mm512_set1_ps
#define _mm512_set1_ps emulated::set1_ps
#undef _mm512_abs_ps
#define _mm512_abs_ps emulated::abs_ps
#undef _mm512_fmadd_ps
#define _mm512_fmadd_ps emulated::fmadd_ps
#undef _mm512_max_ps
#define _mm512_max_ps emulated::max_ps
#undef _mm512_maskz_div_ps
#define _mm512_maskz_div_ps emulated::maskz_div_ps
#undef _mm512_cmp_ps_mask
#define _mm512_cmp_ps_mask emulated::cmp_ps_mask
#undef _mm512_getexp_ps
#define _mm512_getexp_ps emulated::getexp_ps
#undef _mm512_scalef_ps
#define _mm512_scalef_ps emulated::scalef_ps
#undef _mm512_maskz_cvtps_epi32
#define _mm512_maskz_cvtps_epi32 emulated::maskz_cvtps_epi32
#undef _mm512_cvtps_epi32
#define _mm512_cvtps_epi32 emulated::cvtps_epi32
#undef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps emulated::cvtepi32_ps
#undef _mm512_cvtepi32_epi16
#define _mm512_cvtepi32_epi16 emulated::cvtepi32_epi16
#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps emulated::cvtph_ps
#undef _mm512_max_epi32
#define _mm512_max_epi32 emulated::max_epi32
#undef _mm512_max_epu32
#define _mm512_max_epu32 emulated::max_epu32
#undef _mm512_reduce_max_epu32
#define _mm512_reduce_max_epu32 emulated::reduce_max_epu32
#undef _mm512_ternarylogic_epi32
#define _mm512_ternarylogic_epi32 emulated::ternarylogic_epi32
#undef _mm512_dpwssd_epi32
#define _mm512_dpwssd_epi32 emulated::dpwssd_epi32
#undef _mm512_dpbusd_epi32
#define _mm512_dpbusd_epi32 emulated::dpbusd_epi32
#undef _mm512_permutex2var_epi16
#define _mm512_permutex2var_epi16 emulated::permutex2var_epi16
#undef _mm512_shuffle_epi32
#define _mm512_shuffle_epi32 emulated::shuffle_epi32
#undef _mm512_maskz_loadu_ps
#define _mm512_maskz_loadu_ps emulated::maskz_load_ps
#undef _mm512_load_ps
#define _mm512_load_ps emulated::load<__m512>
#undef _mm512_loadu_ps
#define _mm512_loadu_ps emulated::load<__m512>
#undef _mm512_load_si512
#define _mm512_load_si512 emulated::load<__m512i>
#undef _mm512_store_ps
#define _mm512_store_ps emulated::store<__m512>
#undef _mm512_store_si512
#define _mm512_store_si512 emulated::store<__m512i>
#undef _mm512_cvtepi8_epi32
#define _mm512_cvtepi8_epi32 emulated::widened<std::int8_t>
#undef _mm512_cvtepu8_epi32
#define _mm512_cvtepu8_epi32 emulated::widened<std::uint8_t>
#undef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32 emulated::widened<std::uint16_t>
#undef _mm512_cvtsi512_si32
#define _mm512_cvtsi512_si32 [](__m512i a) { return emulated::lane_of<std::int32_t>(a, 0); }
#undef _mm512_packs_epi16
#define _mm512_packs_epi16 emulated::packs<std::int16_t, std::int8_t>
#undef _mm512_packs_epi32
#define _mm512_packs_epi32 emulated::packs<std::int32_t, std::int16_t>
#undef _mm512_unpacklo_epi32
#define _mm512_unpacklo_epi32 emulated::unpacked<std::int32_t, false>
#undef _mm512_unpacklo_epi64
#define _mm512_unpacklo_epi64 emulated::unpacked<std::int64_t, false>
#undef _mm512_unpackhi_epi32
#define _mm512_unpackhi_epi32 emulated::unpacked<std::int32_t, true>
#undef _mm512_unpackhi_epi64
#define _mm512_unpackhi_epi64 emulated::unpacked<std::int64_t, true>
#undef _mm512_permutexvar_epi8
#define _mm512_permutexvar_epi8 emulated::permutexvar<std::uint8_t>
#undef _mm512_permutexvar_epi16
#define _mm512_permutexvar_epi16 emulated::permutexvar<std::int16_t>
#undef _mm512_permutexvar_epi64
#define _mm512_permutexvar_epi64 emulated::permutexvar<std::int64_t>
#undef _mm512_shuffle_i32x4
#define _mm512_shuffle_i32x4 emulated::shuffle_quarters
#undef _mm512_shuffle_i64x2
#define _mm512_shuffle_i64x2 emulated::shuffle_quarters
#undef _mm512_extracti64x4_epi64
#define _mm512_extracti64x4_epi64 emulated::half_of
#undef _mm512_castsi512_si256
#define _mm512_castsi512_si256 [](__m512i a) { return emulated::half_of(a, 0); }
#undef _mm512_add_epi32
#define _mm512_add_epi32 \
  [](__m512i a, __m512i b) { return (__m512i)((emulated::U32)a + (emulated::U32)b); }
#undef _mm512_add_epi16
#define _mm512_add_epi16 \
  [](__m512i a, __m512i b) { return (__m512i)((emulated::U16)a + (emulated::U16)b); }
#undef _mm512_sub_epi32
#define _mm512_sub_epi32 \
  [](__m512i a, __m512i b) { return (__m512i)((emulated::U32)a - (emulated::U32)b); }
#undef _mm512_mullo_epi32
#define _mm512_mullo_epi32 \
  [](__m512i a, __m512i b) { return (__m512i)((emulated::U32)a * (emulated::U32)b); }
#undef _mm512_mulhi_epi16
#define _mm512_mulhi_epi16(a, b)                                                                \
  emulated::made_of<__m512i, std::int16_t>([&](int i) {                                         \
    return emulated::lane_of<std::int16_t>(a, i) * emulated::lane_of<std::int16_t>(b, i) >> 16; \
  })
#undef _mm512_mullo_epi16
#define _mm512_mullo_epi16 \
  [](__m512i a, __m512i b) { return (__m512i)((emulated::U16)a * (emulated::U16)b); }
#undef _mm512_and_si512
#define _mm512_and_si512 \
  [](__m512i a, __m512i b) { return (__m512i)((emulated::S64)a & (emulated::S64)b); }
#undef _mm512_or_si512
#define _mm512_or_si512 \
  [](__m512i a, __m512i b) { return (__m512i)((emulated::S64)a | (emulated::S64)b); }
#undef _mm512_xor_si512
#define _mm512_xor_si512 \
  [](__m512i a, __m512i b) { return (__m512i)((emulated::S64)a ^ (emulated::S64)b); }
#undef _mm512_add_ps
#define _mm512_add_ps [](__m512 a, __m512 b) { return a + b; }
#undef _mm512_sub_ps
#define _mm512_sub_ps [](__m512 a, __m512 b) { return a - b; }
#undef _mm512_mul_ps
#define _mm512_mul_ps [](__m512 a, __m512 b) { return a * b; }
#undef _mm512_div_ps
#define _mm512_div_ps [](__m512 a, __m512 b) { return a / b; }
#undef _mm512_slli_epi16
#define _mm512_slli_epi16 \
  [](__m512i a, unsigned count) { return (__m512i)((emulated::U16)a << count); }
#undef _mm512_slli_epi32
#define _mm512_slli_epi32 \
  [](__m512i a, unsigned count) { return (__m512i)((emulated::U32)a << count); }
#undef _mm512_srli_epi16
#define _mm512_srli_epi16 \
  [](__m512i a, unsigned count) { return (__m512i)((emulated::U16)a >> count); }
#undef _mm512_srli_epi32
#define _mm512_srli_epi32 \
  [](__m512i a, unsigned count) { return (__m512i)((emulated::U32)a >> count); }
#undef _mm512_srai_epi16
#define _mm512_srai_epi16 \
  [](__m512i a, unsigned count) { return (__m512i)((emulated::S16)a >> count); }
#undef _mm512_srai_epi32
#define _mm512_srai_epi32 \
  [](__m512i a, unsigned count) { return (__m512i)((emulated::S32)a >> count); }
#undef _mm512_castps_si512
#define _mm512_castps_si512 [](__m512 a) { return (__m512i)a; }
#undef _mm512_castsi512_ps
#define _mm512_castsi512_ps [](__m512i a) { return (__m512)a; }
#undef _mm512_set1_epi8
#define _mm512_set1_epi8 \
  [](int a) { return (__m512i)(emulated::S8{} + static_cast<std::int8_t>(a)); }
#undef _mm512_set1_epi16
#define _mm512_set1_epi16 \
  [](int a) { return (__m512i)(emulated::S16{} + static_cast<std::int16_t>(a)); }
#undef _mm512_set1_epi32
#define _mm512_set1_epi32 \
  [](int a) { return (__m512i)(emulated::S32{} + static_cast<std::int32_t>(a)); }
#undef _mm512_set_epi64
#define _mm512_set_epi64                                               \
  [](auto h, auto g, auto f, auto e, auto d, auto c, auto b, auto a) { \
    return __m512i{a, b, c, d, e, f, g, h};                            \
  }
#undef _mm512_setzero_ps
#define _mm512_setzero_ps [] { return __m512{}; }
#undef _mm512_setzero_si512
#define _mm512_setzero_si512 [] { return __m512i{}; }
