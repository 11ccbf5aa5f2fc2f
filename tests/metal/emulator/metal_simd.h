// Functions that Metal's threads call together (metal_stdlib): the SIMD group's, and the barriers.
#ifndef PAGODA_EMULATOR_METAL_SIMD_H
#define PAGODA_EMULATOR_METAL_SIMD_H

#include "tests/metal/emulator/lane.h"
#include "tests/metal/emulator/metal_types.h"

#define PAGODA_TOGETHER __attribute__((always_inline, convergent, nomerge)) inline

// NOLINTBEGIN(readability-identifier-naming)
namespace metal {

using pagoda::emulator::Collective;

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
constexpr mem_flags operator|(mem_flags a, mem_flags b) {
  return static_cast<mem_flags>(static_cast<int>(a) | static_cast<int>(b));
}

PAGODA_TOGETHER void threadgroup_barrier(mem_flags flags) {
  pagoda::emulator::threadgroup_barrier((static_cast<int>(flags) & 2) != 0,
                                        (static_cast<int>(flags) & 1) != 0);
}
PAGODA_TOGETHER void simdgroup_barrier(mem_flags) {
  pagoda::emulator::simdgroup_barrier();
}

#define PAGODA_REDUCTION(NAME, TYPE, KIND)                                                  \
  PAGODA_TOGETHER TYPE NAME(TYPE value) {                                                   \
    return as_type<TYPE>(pagoda::emulator::reduce(Collective::KIND, as_type<uint>(value))); \
  }
PAGODA_REDUCTION(simd_sum, float, kSumFloat)
PAGODA_REDUCTION(simd_sum, int, kSumInteger)
PAGODA_REDUCTION(simd_sum, uint, kSumInteger)
PAGODA_REDUCTION(simd_max, float, kMaxFloat)
PAGODA_REDUCTION(simd_max, int, kMaxInt)
PAGODA_REDUCTION(simd_max, uint, kMaxUint)
PAGODA_REDUCTION(simd_min, float, kMinFloat)
PAGODA_REDUCTION(simd_min, int, kMinInt)
PAGODA_REDUCTION(simd_min, uint, kMinUint)
PAGODA_REDUCTION(simd_and, int, kAnd)
PAGODA_REDUCTION(simd_and, uint, kAnd)
PAGODA_REDUCTION(simd_or, int, kOr)
PAGODA_REDUCTION(simd_or, uint, kOr)
PAGODA_REDUCTION(simd_xor, int, kXor)
PAGODA_REDUCTION(simd_xor, uint, kXor)
PAGODA_REDUCTION(simd_prefix_exclusive_sum, float, kPrefixSumFloat)
PAGODA_REDUCTION(simd_prefix_exclusive_sum, int, kPrefixSumInteger)
PAGODA_REDUCTION(simd_prefix_exclusive_sum, uint, kPrefixSumInteger)
#undef PAGODA_REDUCTION

PAGODA_TOGETHER float simd_prefix_inclusive_sum(float value) {
  return simd_prefix_exclusive_sum(value) + value;
}
PAGODA_TOGETHER int simd_prefix_inclusive_sum(int value) {
  return simd_prefix_exclusive_sum(value) + value;
}
PAGODA_TOGETHER uint simd_prefix_inclusive_sum(uint value) {
  return simd_prefix_exclusive_sum(value) + value;
}
PAGODA_TOGETHER bool simd_any(bool value) {
  return pagoda::emulator::reduce(Collective::kOr, value ? 1u : 0u) != 0;
}
PAGODA_TOGETHER bool simd_all(bool value) {
  return pagoda::emulator::reduce(Collective::kAnd, value ? 1u : 0u) != 0;
}

// Returns a value of at most 32 bits in the word that lanes exchange.
template <typename T>
inline uint travelling_bits(T value) {
  static_assert(sizeof(T) <= sizeof(uint), "lanes exchange 32 bits");
  uint bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <typename T>
inline T arrived(uint bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
PAGODA_TOGETHER T simd_shuffle(T value, ushort lane) {
  return arrived<T>(pagoda::emulator::shuffle(travelling_bits(value), lane));
}
template <typename T>
PAGODA_TOGETHER T simd_broadcast(T value, ushort lane) {
  return simd_shuffle(value, lane);
}
template <typename T>
PAGODA_TOGETHER T simd_broadcast_first(T value) {
  return simd_shuffle(value, 0);
}
template <typename T>
PAGODA_TOGETHER T simd_shuffle_xor(T value, ushort mask) {
  return simd_shuffle(value, static_cast<ushort>(pagoda::emulator::current_lane() ^ mask));
}
// Returns the value of the lane `delta` below. The lowest `delta` lanes keep their own value.
template <typename T>
PAGODA_TOGETHER T simd_shuffle_up(T value, ushort delta) {
  const uint lane = pagoda::emulator::current_lane();
  return simd_shuffle(value, static_cast<ushort>(lane >= delta ? lane - delta : lane));
}
template <typename T>
PAGODA_TOGETHER T simd_shuffle_down(T value, ushort delta) {
  const uint lane = pagoda::emulator::current_lane();
  return simd_shuffle(value, static_cast<ushort>(lane + delta < 32 ? lane + delta : lane));
}

}  // namespace metal
// NOLINTEND(readability-identifier-naming)

#endif  // PAGODA_EMULATOR_METAL_SIMD_H
