// Metal's mathematics (metal_stdlib). Functions for which Metal bounds the accuracy are the host's,
// and those of `precise` are the same. Functions of two integers take two of one type, as in Metal.
#ifndef PAGODA_EMULATOR_METAL_MATH_H
#define PAGODA_EMULATOR_METAL_MATH_H

#include "tests/metal/emulator/metal_types.h"

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define HUGE_VALF __builtin_huge_valf()
#define M_PI_F 3.14159265358979323846264338327950288f
#define M_LOG2E_F 1.44269504088896340735992468100189214f
#define M_LN2_F 0.693147180559945309417232121458176568f

// NOLINTBEGIN(readability-identifier-naming)
namespace metal {

#define PAGODA_FLOAT_FUNCTION(NAME) \
  inline float NAME(float x) {      \
    return __builtin_##NAME##f(x);  \
  }
PAGODA_FLOAT_FUNCTION(exp)
PAGODA_FLOAT_FUNCTION(exp2)
PAGODA_FLOAT_FUNCTION(log)
PAGODA_FLOAT_FUNCTION(log2)
PAGODA_FLOAT_FUNCTION(log10)
PAGODA_FLOAT_FUNCTION(sin)
PAGODA_FLOAT_FUNCTION(cos)
PAGODA_FLOAT_FUNCTION(tan)
PAGODA_FLOAT_FUNCTION(tanh)
PAGODA_FLOAT_FUNCTION(sinh)
PAGODA_FLOAT_FUNCTION(cosh)
PAGODA_FLOAT_FUNCTION(asin)
PAGODA_FLOAT_FUNCTION(acos)
PAGODA_FLOAT_FUNCTION(atan)
PAGODA_FLOAT_FUNCTION(sqrt)
PAGODA_FLOAT_FUNCTION(fabs)
PAGODA_FLOAT_FUNCTION(floor)
PAGODA_FLOAT_FUNCTION(ceil)
PAGODA_FLOAT_FUNCTION(trunc)
PAGODA_FLOAT_FUNCTION(rint)
PAGODA_FLOAT_FUNCTION(round)
#undef PAGODA_FLOAT_FUNCTION

inline float rsqrt(float x) {
  return 1.0f / __builtin_sqrtf(x);
}
inline float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
inline float fmod(float x, float y) {
  return __builtin_fmodf(x, y);
}
inline float pow(float x, float y) {
  return __builtin_powf(x, y);
}
inline float powr(float x, float y) {
  return __builtin_powf(x, y);
}
inline float ldexp(float x, int exponent) {
  return __builtin_ldexpf(x, exponent);
}
inline float copysign(float x, float y) {
  return __builtin_copysignf(x, y);
}
inline float divide(float x, float y) {
  return x / y;
}
inline float fmin(float x, float y) {
  return __builtin_fminf(x, y);
}
inline float fmax(float x, float y) {
  return __builtin_fmaxf(x, y);
}
inline float sign(float x) {
  return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f * x;
}
inline bool isnan(float x) {
  return __builtin_isnan(x);
}
inline bool isinf(float x) {
  return __builtin_isinf(x);
}
inline bool isfinite(float x) {
  return __builtin_isfinite(x);
}
inline bool signbit(float x) {
  return __builtin_signbit(x);
}

namespace precise {
using metal::cos;
using metal::divide;
using metal::exp;
using metal::exp2;
using metal::log;
using metal::log2;
using metal::pow;
using metal::powr;
using metal::rsqrt;
using metal::sin;
using metal::sqrt;
using metal::tan;
using metal::tanh;
}  // namespace precise

// Returns the lesser; if one of the two is NaN, returns the other.
inline float min(float x, float y) {
  return __builtin_fminf(x, y);
}
inline float max(float x, float y) {
  return __builtin_fmaxf(x, y);
}
#define PAGODA_INTEGER_FUNCTIONS(T)    \
  inline T min(T x, T y) {             \
    return y < x ? y : x;              \
  }                                    \
  inline T max(T x, T y) {             \
    return x < y ? y : x;              \
  }                                    \
  inline T clamp(T x, T low, T high) { \
    return min(max(x, low), high);     \
  }
PAGODA_INTEGER_FUNCTIONS(char)
PAGODA_INTEGER_FUNCTIONS(uchar)
PAGODA_INTEGER_FUNCTIONS(short)
PAGODA_INTEGER_FUNCTIONS(ushort)
PAGODA_INTEGER_FUNCTIONS(int)
PAGODA_INTEGER_FUNCTIONS(uint)
PAGODA_INTEGER_FUNCTIONS(long)
PAGODA_INTEGER_FUNCTIONS(ulong)
#undef PAGODA_INTEGER_FUNCTIONS
inline float clamp(float x, float low, float high) {
  return min(max(x, low), high);
}

inline int abs(int x) {
  return x < 0 ? static_cast<int>(0u - static_cast<uint>(x)) : x;
}
inline float abs(float x) {
  return __builtin_fabsf(x);
}
// Returns `yes` if the condition holds, else `no`. In the arguments `no` comes first.
template <typename T>
T select(T no, T yes, bool condition) {
  return condition ? yes : no;
}

inline uint popcount(uint x) {
  return static_cast<uint>(__builtin_popcount(x));
}
inline int popcount(int x) {
  return __builtin_popcount(static_cast<uint>(x));
}
inline uint clz(uint x) {
  return x == 0 ? 32u : static_cast<uint>(__builtin_clz(x));
}
inline int clz(int x) {
  return x == 0 ? 32 : __builtin_clz(static_cast<uint>(x));
}
inline uint ctz(uint x) {
  return x == 0 ? 32u : static_cast<uint>(__builtin_ctz(x));
}
inline int ctz(int x) {
  return x == 0 ? 32 : __builtin_ctz(static_cast<uint>(x));
}
inline uint reverse_bits(uint x) {
  return __builtin_bitreverse32(x);
}
inline uint mulhi(uint x, uint y) {
  return static_cast<uint>((static_cast<ulong>(x) * y) >> 32);
}
inline int mulhi(int x, int y) {
  return static_cast<int>((static_cast<long>(x) * y) >> 32);
}
inline uint rotate(uint x, uint count) {
  return __builtin_rotateleft32(x, count & 31u);
}
inline uint extract_bits(uint x, uint offset, uint bits) {
  return bits == 0 ? 0u : (x >> offset) & (~0u >> (32u - bits));
}
inline int extract_bits(int x, uint offset, uint bits) {
  return bits == 0
             ? 0
             : static_cast<int>(static_cast<uint>(x) << (32u - bits - offset)) >> (32u - bits);
}

}  // namespace metal
// NOLINTEND(readability-identifier-naming)

#endif  // PAGODA_EMULATOR_METAL_MATH_H
