// Loops over registers for the files that are compiled for one instruction set each. All here is in
// an unnamed namespace: an inline function with a linked name would be merged with other files' and
// could then run on a machine that lacks the instructions.
#pragma once

#include <utility>

#define PAGODA_FLATTEN __attribute__((always_inline))
#define PAGODA_INLINE inline PAGODA_FLATTEN

namespace pagoda::cpu {
namespace {

// A number that is known when compiling: an array of sums that a loop indexes at run time lives in
// memory.
template <int kNumber>
struct Index {
  static constexpr int kValue = kNumber;
  // Converts to the index, so that it is written as one.
  constexpr operator int() const { return kNumber; }  // NOLINT(google-explicit-constructor)
};

template <int kFrom, class Visit, int... kNumbers>
PAGODA_INLINE void visit_each(const Visit& visit, std::integer_sequence<int, kNumbers...>) {
  (visit(Index<kFrom + kNumbers>()), ...);
}

// Calls visit(kFrom), visit(kFrom + 1), ... visit(kCount - 1) with such numbers. All calls stand in
// one function: one within the other would have the compiler copy the last body kCount times.
template <int kCount, int kFrom = 0, class Visit>
PAGODA_INLINE void for_all(const Visit& visit) {
  constexpr int kCalls = kFrom < kCount ? kCount - kFrom : 0;
  visit_each<kFrom>(visit, std::make_integer_sequence<int, kCalls>());
}

}  // namespace
}  // namespace pagoda::cpu
