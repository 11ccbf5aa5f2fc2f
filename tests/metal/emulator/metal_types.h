// Metal's numbers and vectors (metal_stdlib).
#ifndef PAGODA_EMULATOR_METAL_TYPES_H
#define PAGODA_EMULATOR_METAL_TYPES_H

#include <cstddef>
#include <cstdint>

// NOLINTBEGIN(readability-identifier-naming)
namespace metal {

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;
using std::size_t;

using int8_t = std::int8_t;
using uint8_t = std::uint8_t;
using int16_t = std::int16_t;
using uint16_t = std::uint16_t;
using int32_t = std::int32_t;
using uint32_t = std::uint32_t;
using int64_t = std::int64_t;
using uint64_t = std::uint64_t;

// A float's upper half; rounded to nearest, ties to even.
struct bfloat {
  ushort bits;

  bfloat() = default;
  explicit bfloat(float value) {
    const uint all = __builtin_bit_cast(uint, value);
    const bool is_nan = (all & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<ushort>(is_nan ? (all >> 16) | 0x40u
                                      : (all + 0x7fffu + ((all >> 16) & 1u)) >> 16);
  }
  explicit operator float() const {
    return __builtin_bit_cast(float, static_cast<uint>(bits) << 16);
  }
};

// IEEE's binary16; rounded to nearest, ties to even. Its denormals are not flushed.
struct half {
  __fp16 value;

  half() = default;
  explicit half(float x) : value(static_cast<__fp16>(x)) {}
  explicit operator float() const { return static_cast<float>(value); }
};

template <typename T>
struct alignas(2 * sizeof(T)) pair_of {
  T x, y;
  T& operator[](int i) { return (&x)[i]; }
  const T& operator[](int i) const { return (&x)[i]; }
};
template <typename T>
struct alignas(4 * sizeof(T)) four_of {
  T x, y, z, w;
  T& operator[](int i) { return (&x)[i]; }
  const T& operator[](int i) const { return (&x)[i]; }
};

using half2 = pair_of<half>;
using half4 = four_of<half>;
using bfloat2 = pair_of<bfloat>;
using bfloat4 = four_of<bfloat>;

#define PAGODA_VECTORS_OF(T)                          \
  typedef T T##2 __attribute__((ext_vector_type(2))); \
  typedef T T##3 __attribute__((ext_vector_type(3))); \
  typedef T T##4 __attribute__((ext_vector_type(4)))
PAGODA_VECTORS_OF(char);
PAGODA_VECTORS_OF(uchar);
PAGODA_VECTORS_OF(short);
PAGODA_VECTORS_OF(ushort);
PAGODA_VECTORS_OF(int);
PAGODA_VECTORS_OF(uint);
PAGODA_VECTORS_OF(float);
#undef PAGODA_VECTORS_OF
typedef long long2 __attribute__((ext_vector_type(2)));
typedef ulong ulong2 __attribute__((ext_vector_type(2)));

// Returns the value of another type that has the same bits.
template <typename To, typename From>
To as_type(From value) {
  static_assert(sizeof(To) == sizeof(From), "as_type keeps the size");
  return __builtin_bit_cast(To, value);
}

}  // namespace metal
// NOLINTEND(readability-identifier-naming)

// Kernels may use these names before `using namespace metal`, too.
using metal::as_type;
using metal::bfloat;
using metal::half;
using metal::uint;
using metal::uint3;
using metal::ulong;
using metal::ushort;

#endif  // PAGODA_EMULATOR_METAL_TYPES_H
