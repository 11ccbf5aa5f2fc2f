// Unrolled loops over registers, for files that are compiled for one instruction set each. All code
// here is in an unnamed namespace. The linker would merge inline functions of the same name from
// several files, and a machine could then run instructions that it lacks.
#pragma once

#include <utility>

#define PAGODA_FLATTEN __attribute__((always_inline))
#define PAGODA_INLINE inline PAGODA_FLATTEN

namespace pagoda::cpu {
namespace {

// An index that is a compile-time constant. An array of sums that is indexed at run time would live
// in memory, not in registers.
template <int kNumber>
struct Index {
  static constexpr int kValue = kNumber;
  // Converts to int, so that it can be used like one.
  constexpr operator int() const { return kNumber; }  // NOLINT(google-explicit-constructor)
};

template <int kFrom, class Visit, int... kNumbers>
PAGODA_INLINE void visit_each(const Visit& visit, std::integer_sequence<int, kNumbers...>) {
  (visit(Index<kFrom + kNumbers>()), ...);
}

// Calls visit(kFrom), visit(kFrom + 1), ... visit(kCount - 1), each with an Index. All calls are in
// one function: if calls were nested, the compiler would copy the last body kCount times.
template <int kCount, int kFrom = 0, class Visit>
PAGODA_INLINE void for_all(const Visit& visit) {
  constexpr int kCalls = kFrom < kCount ? kCount - kFrom : 0;
  visit_each<kFrom>(visit, std::make_integer_sequence<int, kCalls>());
}

}  // namespace
}  // namespace pagoda::cpu
