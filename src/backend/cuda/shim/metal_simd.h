// Functions that Metal's threads call together (metal_stdlib): those of a SIMD group, barriers, and
// atomics. All lanes of a warp call each of them, as our kernels do on Metal.
#ifndef PAGODA_CUDA_METAL_SIMD_H
#define PAGODA_CUDA_METAL_SIMD_H

namespace metal {

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
PAGODA_DEVICE constexpr mem_flags operator|(mem_flags a, mem_flags b) {
  return static_cast<mem_flags>(static_cast<int>(a) | static_cast<int>(b));
}
PAGODA_DEVICE void threadgroup_barrier(mem_flags) {
  __syncthreads();
}
PAGODA_DEVICE void simdgroup_barrier(mem_flags) {
  __syncwarp();
}

// Returns a value of at most 32 bits in the word that lanes exchange.
template <typename T>
PAGODA_DEVICE uint travelling_bits(T value) {
  static_assert(sizeof(T) <= sizeof(uint), "lanes exchange 32 bits");
  uint bits = 0;
  memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <typename T>
PAGODA_DEVICE T arrived(uint bits) {
  T value;
  memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
PAGODA_DEVICE T simd_shuffle(T value, ushort lane) {
  return arrived<T>(__shfl_sync(0xffffffffu, travelling_bits(value), lane));
}
template <typename T>
PAGODA_DEVICE T simd_broadcast(T value, ushort lane) {
  return simd_shuffle(value, lane);
}
template <typename T>
PAGODA_DEVICE T simd_broadcast_first(T value) {
  return simd_shuffle(value, 0);
}
template <typename T>
PAGODA_DEVICE T simd_shuffle_xor(T value, ushort mask) {
  return arrived<T>(__shfl_xor_sync(0xffffffffu, travelling_bits(value), mask));
}
template <typename T>
PAGODA_DEVICE T simd_shuffle_up(T value, ushort delta) {
  return arrived<T>(__shfl_up_sync(0xffffffffu, travelling_bits(value), delta));
}
template <typename T>
PAGODA_DEVICE T simd_shuffle_down(T value, ushort delta) {
  return arrived<T>(__shfl_down_sync(0xffffffffu, travelling_bits(value), delta));
}

#define PAGODA_REDUCTION(name, type, combined)    \
  PAGODA_DEVICE type name(type x) {               \
    for (ushort mask = 16; mask > 0; mask /= 2) { \
      const type y = simd_shuffle_xor(x, mask);   \
      x = combined;                               \
    }                                             \
    return x;                                     \
  }
#define PAGODA_REDUCTIONS(type)               \
  PAGODA_REDUCTION(simd_sum, type, x + y)     \
  PAGODA_REDUCTION(simd_max, type, max(x, y)) \
  PAGODA_REDUCTION(simd_min, type, min(x, y))
PAGODA_REDUCTIONS(float)
PAGODA_REDUCTIONS(int)
PAGODA_REDUCTIONS(uint)
PAGODA_REDUCTION(simd_and, uint, x& y)
PAGODA_REDUCTION(simd_or, uint, x | y)
PAGODA_REDUCTION(simd_xor, uint, x ^ y)
#undef PAGODA_REDUCTIONS
#undef PAGODA_REDUCTION

#define PAGODA_PREFIX_SUMS(type)                                          \
  PAGODA_DEVICE type simd_prefix_inclusive_sum(type x) {                  \
    const uint lane = threadIdx.x % 32;                                   \
    for (ushort delta = 1; delta < 32; delta *= 2) {                      \
      const type before = simd_shuffle_up(x, delta);                      \
      if (lane >= delta) x = before + x;                                  \
    }                                                                     \
    return x;                                                             \
  }                                                                       \
  PAGODA_DEVICE type simd_prefix_exclusive_sum(type x) {                  \
    const type before = simd_shuffle_up(simd_prefix_inclusive_sum(x), 1); \
    return threadIdx.x % 32 == 0 ? type(0) : before;                      \
  }
PAGODA_PREFIX_SUMS(float)
PAGODA_PREFIX_SUMS(int)
PAGODA_PREFIX_SUMS(uint)
#undef PAGODA_PREFIX_SUMS

PAGODA_DEVICE bool simd_any(bool x) {
  return __any_sync(0xffffffffu, x);
}
PAGODA_DEVICE bool simd_all(bool x) {
  return __all_sync(0xffffffffu, x);
}

struct atomic_int {
  int word;
};
struct atomic_uint {
  uint word;
};
enum memory_order { memory_order_relaxed };

#define PAGODA_ATOMIC(metal_name, cuda_name, type)                                  \
  PAGODA_DEVICE type metal_name(volatile atomic_##type* at, type x, memory_order) { \
    return cuda_name(const_cast<type*>(&at->word), x);                              \
  }
#define PAGODA_ATOMICS(type)                                                                   \
  PAGODA_ATOMIC(atomic_exchange_explicit, ::atomicExch, type)                                  \
  PAGODA_ATOMIC(atomic_fetch_add_explicit, ::atomicAdd, type)                                  \
  PAGODA_ATOMIC(atomic_fetch_sub_explicit, ::atomicSub, type)                                  \
  PAGODA_ATOMIC(atomic_fetch_max_explicit, ::atomicMax, type)                                  \
  PAGODA_ATOMIC(atomic_fetch_min_explicit, ::atomicMin, type)                                  \
  PAGODA_ATOMIC(atomic_fetch_and_explicit, ::atomicAnd, type)                                  \
  PAGODA_ATOMIC(atomic_fetch_or_explicit, ::atomicOr, type)                                    \
  PAGODA_ATOMIC(atomic_fetch_xor_explicit, ::atomicXor, type)                                  \
  PAGODA_DEVICE type atomic_load_explicit(const volatile atomic_##type* at, memory_order) {    \
    return ::atomicAdd(const_cast<type*>(&at->word), type(0));                                 \
  }                                                                                            \
  PAGODA_DEVICE void atomic_store_explicit(volatile atomic_##type* at, type x, memory_order) { \
    ::atomicExch(const_cast<type*>(&at->word), x);                                             \
  }                                                                                            \
  PAGODA_DEVICE bool atomic_compare_exchange_weak_explicit(                                    \
      volatile atomic_##type* at, type* expected, type x, memory_order, memory_order) {        \
    const type before = ::atomicCAS(const_cast<type*>(&at->word), *expected, x);               \
    const bool is_equal = before == *expected;                                                 \
    *expected = before;                                                                        \
    return is_equal;                                                                           \
  }
PAGODA_ATOMICS(int)
PAGODA_ATOMICS(uint)
#undef PAGODA_ATOMICS
#undef PAGODA_ATOMIC

}  // namespace metal

#endif  // PAGODA_CUDA_METAL_SIMD_H
