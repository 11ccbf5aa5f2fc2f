// Loops over registers for the files that are compiled for one instruction set each. All here is in
// an unnamed namespace: an inline function with a linked name would be merged with other files' and
// could then run on a machine that lacks the instructions.
#pragma once

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

// Calls visit(0), visit(1), ... visit(kCount - 1) with such numbers.
template <int kCount, int kFrom = 0, class Visit>
PAGODA_INLINE void for_all(const Visit& visit) {
  if constexpr (kFrom < kCount) {
    visit(Index<kFrom>());
    for_all<kCount, kFrom + 1>(visit);
  }
}

}  // namespace
}  // namespace pagoda::cpu
