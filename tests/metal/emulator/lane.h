// Calls of a kernel's thread to the emulator: what its SIMD group or threadgroup does together, and
// atomics. Only metal_stdlib makes them.
//
// A call's place in the code says whether all lanes have reached the same one. So what stands
// between a kernel and these is always inlined.
#pragma once

#include <cstdint>

// Keeps clang from moving a call into branches that not all lanes take, from copying it, and from
// making one of two.
#ifdef __clang__
#define PAGODA_CONVERGENT __attribute__((convergent, nomerge))
#else
#define PAGODA_CONVERGENT
#endif

namespace pagoda::emulator {

enum class Collective : std::uint8_t {
  kShuffle,  // every lane picks a lane's value
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
  kEnd,  // of the kernel
};

// Waits for the other lanes. Returns what lane `source` hands in.
PAGODA_CONVERGENT std::uint32_t shuffle(std::uint32_t bits, std::uint32_t source);
// Waits for the other lanes. Returns what comes of their values and this one's.
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
// Notes that the lane loads or stores its part of a matrix, and where that one begins: all lanes must
// do so together. Does not wait for them. Returns the lane.
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
// Updates a word of device or threadgroup memory. Returns what it was.
std::uint32_t update_atomic(void* word, AtomicUpdate update, std::uint32_t operand);
// Stores `desired` where the word is `expected`. Returns what it was.
std::uint32_t compare_exchange(void* word, std::uint32_t expected, std::uint32_t desired);

}  // namespace pagoda::emulator
