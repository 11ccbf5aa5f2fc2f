// Calls from a kernel's thread to the emulator: those that a SIMD group or a threadgroup makes
// together, and atomics. Only metal_stdlib makes them.
//
// The emulator compares the places of calls in the code to check that all lanes have reached the
// same call. So the functions between a kernel and these calls are always inlined.
#pragma once

#include <cstdint>

// Keeps clang from moving a call into branches that not all lanes take, from duplicating a call,
// and from merging two calls.
#ifdef __clang__
#define PAGODA_CONVERGENT __attribute__((convergent, nomerge))
#else
#define PAGODA_CONVERGENT
#endif

namespace pagoda::emulator {

enum class Collective : std::uint8_t {
  kShuffle,  // each lane gets the value of a lane of its choice
  kSumFloat,
  kSumInteger,
  kMaxFloat,
  kMaxInt,
  kMaxUint,
  kMinFloat,
  kMinInt,
  kMinUint,
  kAnd,
  kOr,
  kXor,
  kPrefixSumFloat,  // exclusive
  kPrefixSumInteger,
  kMatrixProduct,
  kSimdgroupBarrier,
  kThreadgroupBarrier,
  kEnd,  // the kernel's end
};

// Waits for the other lanes. Returns the `bits` of lane `source`.
PAGODA_CONVERGENT std::uint32_t shuffle(std::uint32_t bits, std::uint32_t source);
// Waits for the other lanes. Returns the result of `kind` over the values of all lanes.
PAGODA_CONVERGENT std::uint32_t reduce(Collective kind, std::uint32_t bits);
PAGODA_CONVERGENT void simdgroup_barrier();
PAGODA_CONVERGENT void threadgroup_barrier(bool orders_threadgroup_memory,
                                           bool orders_device_memory);

// A lane's elements of an 8x8 matrix: two neighbours of a row.
struct MatrixPart {
  float x;
  float y;
};
// The place of a lane's first element.
struct MatrixPlace {
  std::uint32_t row;
  std::uint32_t column;
};
constexpr MatrixPlace matrix_place_of(std::uint32_t lane) {
  return {lane / 16 * 4 + lane % 8 / 2, lane % 16 / 8 * 4 + lane % 2 * 2};
}
std::uint32_t current_lane();
// Records that the lane loads or stores its part of the matrix that begins at `matrix`. All lanes
// must do so together, but this call does not wait for them. Returns the lane.
std::uint32_t touch_matrix(const void* matrix, std::uint64_t elements_per_row);
// Waits for the other lanes. Returns a * b + c.
PAGODA_CONVERGENT MatrixPart multiply_accumulate(MatrixPart a, MatrixPart b, MatrixPart c);

enum class AtomicUpdate : std::uint8_t {
  kLoad,
  kStore,
  kExchange,
  kAdd,
  kSub,
  kMaxInt,
  kMaxUint,
  kMinInt,
  kMinUint,
  kAnd,
  kOr,
  kXor,
};
// Updates a word of device or threadgroup memory. Returns its former value.
std::uint32_t update_atomic(void* word, AtomicUpdate update, std::uint32_t operand);
// Stores `desired` if the word is `expected`. Returns the word's former value.
std::uint32_t compare_exchange(void* word, std::uint32_t expected, std::uint32_t desired);

}  // namespace pagoda::emulator
