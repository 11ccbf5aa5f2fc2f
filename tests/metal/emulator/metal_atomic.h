// Metal's atomic words (metal_stdlib): relaxed ones, as Metal has no others.
#ifndef PAGODA_EMULATOR_METAL_ATOMIC_H
#define PAGODA_EMULATOR_METAL_ATOMIC_H

#include "tests/metal/emulator/lane.h"
#include "tests/metal/emulator/metal_types.h"

// NOLINTBEGIN(readability-identifier-naming)
namespace metal {

struct atomic_uint {
  uint word;
};
struct atomic_int {
  int word;
};

enum memory_order { memory_order_relaxed };

using pagoda::emulator::AtomicUpdate;

#define PAGODA_ATOMIC(NAME, TYPE, UPDATE)                                                          \
  inline TYPE NAME(volatile atomic_##TYPE* object, TYPE operand, memory_order) {                   \
    return static_cast<TYPE>(pagoda::emulator::update_atomic(const_cast<atomic_##TYPE*>(object),   \
                                                             UPDATE, static_cast<uint>(operand))); \
  }
PAGODA_ATOMIC(atomic_exchange_explicit, int, AtomicUpdate::kExchange)
PAGODA_ATOMIC(atomic_exchange_explicit, uint, AtomicUpdate::kExchange)
PAGODA_ATOMIC(atomic_fetch_add_explicit, int, AtomicUpdate::kAdd)
PAGODA_ATOMIC(atomic_fetch_add_explicit, uint, AtomicUpdate::kAdd)
PAGODA_ATOMIC(atomic_fetch_sub_explicit, int, AtomicUpdate::kSub)
PAGODA_ATOMIC(atomic_fetch_sub_explicit, uint, AtomicUpdate::kSub)
PAGODA_ATOMIC(atomic_fetch_max_explicit, int, AtomicUpdate::kMaxInt)
PAGODA_ATOMIC(atomic_fetch_max_explicit, uint, AtomicUpdate::kMaxUint)
PAGODA_ATOMIC(atomic_fetch_min_explicit, int, AtomicUpdate::kMinInt)
PAGODA_ATOMIC(atomic_fetch_min_explicit, uint, AtomicUpdate::kMinUint)
PAGODA_ATOMIC(atomic_fetch_and_explicit, int, AtomicUpdate::kAnd)
PAGODA_ATOMIC(atomic_fetch_and_explicit, uint, AtomicUpdate::kAnd)
PAGODA_ATOMIC(atomic_fetch_or_explicit, int, AtomicUpdate::kOr)
PAGODA_ATOMIC(atomic_fetch_or_explicit, uint, AtomicUpdate::kOr)
PAGODA_ATOMIC(atomic_fetch_xor_explicit, int, AtomicUpdate::kXor)
PAGODA_ATOMIC(atomic_fetch_xor_explicit, uint, AtomicUpdate::kXor)
#undef PAGODA_ATOMIC

#define PAGODA_ATOMIC_ACCESS(TYPE)                                                                \
  inline TYPE atomic_load_explicit(const volatile atomic_##TYPE* object, memory_order) {          \
    return static_cast<TYPE>(pagoda::emulator::update_atomic(const_cast<atomic_##TYPE*>(object),  \
                                                             AtomicUpdate::kLoad, 0));            \
  }                                                                                               \
  inline void atomic_store_explicit(volatile atomic_##TYPE* object, TYPE value, memory_order) {   \
    pagoda::emulator::update_atomic(const_cast<atomic_##TYPE*>(object), AtomicUpdate::kStore,     \
                                    static_cast<uint>(value));                                    \
  }                                                                                               \
  inline bool atomic_compare_exchange_weak_explicit(                                              \
      volatile atomic_##TYPE* object, TYPE* expected, TYPE desired, memory_order, memory_order) { \
    const TYPE before = static_cast<TYPE>(pagoda::emulator::compare_exchange(                     \
        const_cast<atomic_##TYPE*>(object), static_cast<uint>(*expected),                         \
        static_cast<uint>(desired)));                                                             \
    const bool is_equal = before == *expected;                                                    \
    *expected = before;                                                                           \
    return is_equal;                                                                              \
  }
PAGODA_ATOMIC_ACCESS(int)
PAGODA_ATOMIC_ACCESS(uint)
#undef PAGODA_ATOMIC_ACCESS

}  // namespace metal
// NOLINTEND(readability-identifier-naming)

#endif  // PAGODA_EMULATOR_METAL_ATOMIC_H
