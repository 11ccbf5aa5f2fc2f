// Metal's mathematics (metal_stdlib). CUDA has functions of the same names outside any namespace.
// So ours have names of their own, and macros replace Metal's names by them.
#ifndef PAGODA_CUDA_METAL_MATH_H
#define PAGODA_CUDA_METAL_MATH_H

namespace metal {

#define PAGODA_OF_ONE(name)                    \
  PAGODA_DEVICE float pagoda_##name(float x) { \
    return ::name##f(x);                       \
  }
#define PAGODA_OF_TWO(name)                             \
  PAGODA_DEVICE float pagoda_##name(float x, float y) { \
    return ::name##f(x, y);                             \
  }
PAGODA_OF_ONE(ceil)
PAGODA_OF_ONE(cos)
PAGODA_OF_ONE(exp)
PAGODA_OF_ONE(exp2)
PAGODA_OF_ONE(fabs)
PAGODA_OF_ONE(floor)
PAGODA_OF_ONE(log)
PAGODA_OF_ONE(log2)
PAGODA_OF_ONE(rint)
PAGODA_OF_ONE(round)
PAGODA_OF_ONE(rsqrt)
PAGODA_OF_ONE(sin)
PAGODA_OF_ONE(sqrt)
PAGODA_OF_ONE(tanh)
PAGODA_OF_ONE(trunc)
PAGODA_OF_TWO(copysign)
PAGODA_OF_TWO(fmax)
PAGODA_OF_TWO(fmin)
PAGODA_OF_TWO(fmod)
PAGODA_OF_TWO(pow)
#undef PAGODA_OF_ONE
#undef PAGODA_OF_TWO

PAGODA_DEVICE float pagoda_fma(float x, float y, float z) {
  return ::fmaf(x, y, z);
}
PAGODA_DEVICE float pagoda_divide(float x, float y) {
  return x / y;
}
PAGODA_DEVICE float pagoda_ldexp(float x, int exponent) {
  return ::ldexpf(x, exponent);
}
PAGODA_DEVICE bool pagoda_isnan(float x) {
  return (__float_as_uint(x) & 0x7fffffffu) > 0x7f800000u;
}
PAGODA_DEVICE bool pagoda_isinf(float x) {
  return (__float_as_uint(x) & 0x7fffffffu) == 0x7f800000u;
}
PAGODA_DEVICE bool pagoda_isfinite(float x) {
  return (__float_as_uint(x) & 0x7fffffffu) < 0x7f800000u;
}
PAGODA_DEVICE bool pagoda_signbit(float x) {
  return (__float_as_uint(x) >> 31) != 0;
}

#define PAGODA_OF_INTEGERS(type)                                 \
  PAGODA_DEVICE type pagoda_min(type x, type y) {                \
    return y < x ? y : x;                                        \
  }                                                              \
  PAGODA_DEVICE type pagoda_max(type x, type y) {                \
    return x < y ? y : x;                                        \
  }                                                              \
  PAGODA_DEVICE type pagoda_clamp(type x, type low, type high) { \
    return pagoda_min(pagoda_max(x, low), high);                 \
  }
PAGODA_OF_INTEGERS(char)
PAGODA_OF_INTEGERS(uchar)
PAGODA_OF_INTEGERS(short)
PAGODA_OF_INTEGERS(ushort)
PAGODA_OF_INTEGERS(int)
PAGODA_OF_INTEGERS(uint)
PAGODA_OF_INTEGERS(long)
PAGODA_OF_INTEGERS(ulong)
#undef PAGODA_OF_INTEGERS
// Returns the lesser; if one of the two is NaN, returns the other. So does max.
PAGODA_DEVICE float pagoda_min(float x, float y) {
  return ::fminf(x, y);
}
PAGODA_DEVICE float pagoda_max(float x, float y) {
  return ::fmaxf(x, y);
}
PAGODA_DEVICE float pagoda_clamp(float x, float low, float high) {
  return pagoda_min(pagoda_max(x, low), high);
}
PAGODA_DEVICE int pagoda_abs(int x) {
  return x < 0 ? -x : x;
}
PAGODA_DEVICE float pagoda_abs(float x) {
  return ::fabsf(x);
}
template <typename T>
PAGODA_DEVICE T select(T if_false, T if_true, bool condition) {
  return condition ? if_true : if_false;
}

PAGODA_DEVICE uint popcount(uint x) {
  return uint(__popc(x));
}
PAGODA_DEVICE int popcount(int x) {
  return __popc(uint(x));
}
PAGODA_DEVICE uint clz(uint x) {
  return uint(__clz(int(x)));
}
PAGODA_DEVICE int clz(int x) {
  return __clz(x);
}
PAGODA_DEVICE uint ctz(uint x) {
  return x == 0 ? 32u : uint(__ffs(int(x)) - 1);
}
PAGODA_DEVICE uint reverse_bits(uint x) {
  return __brev(x);
}
PAGODA_DEVICE uint mulhi(uint x, uint y) {
  return __umulhi(x, y);
}
PAGODA_DEVICE int mulhi(int x, int y) {
  return __mulhi(x, y);
}

template <typename To, typename From>
PAGODA_DEVICE To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From), "as_type keeps the size");
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

namespace precise {
using namespace metal;
}
namespace fast {
using namespace metal;
}

}  // namespace metal

#define abs pagoda_abs
#define ceil pagoda_ceil
#define clamp pagoda_clamp
#define copysign pagoda_copysign
#define cos pagoda_cos
#define divide pagoda_divide
#define exp pagoda_exp
#define exp2 pagoda_exp2
#define fabs pagoda_fabs
#define floor pagoda_floor
#define fma pagoda_fma
#define fmax pagoda_fmax
#define fmin pagoda_fmin
#define fmod pagoda_fmod
#define isfinite pagoda_isfinite
#define isinf pagoda_isinf
#define isnan pagoda_isnan
#define ldexp pagoda_ldexp
#define log pagoda_log
#define log2 pagoda_log2
#define max pagoda_max
#define min pagoda_min
#define pow pagoda_pow
#define rint pagoda_rint
#define round pagoda_round
#define rsqrt pagoda_rsqrt
#define signbit pagoda_signbit
#define sin pagoda_sin
#define sqrt pagoda_sqrt
#define tanh pagoda_tanh
#define trunc pagoda_trunc

#endif  // PAGODA_CUDA_METAL_MATH_H
