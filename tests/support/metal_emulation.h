// An emulation in which a Metal kernel's body runs as C++, so that it is tested where there is no
// Apple GPU.
//
// A threadgroup's threads are fibers. They run one after another up to the next operation that
// threads take together (simd_sum, threadgroup_barrier), which every thread of its SIMD group, or
// of the threadgroup, must reach: another order of arrival fails the run. Sums of a SIMD group add
// neighbours, then pairs of them; Apple's order is not documented, but is one and the same.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include "core/half.h"

namespace pagoda::metal_emulation {

struct Uint3 {
  unsigned x, y, z;
};

struct Thread {
  Uint3 threadgroup_position_in_grid;
  unsigned thread_index_in_threadgroup;
  unsigned thread_index_in_simdgroup;
  unsigned simdgroup_index_in_threadgroup;
};

struct Grid {
  int num_groups_x;
  int num_groups_y;
  int num_threads;  // of a threadgroup, a multiple of 32
};

// Runs `body` for each thread of the grid.
void run_grid(const Grid& grid, const std::function<void(const Thread&)>& body);

float simd_sum(float value);
float simd_max(float value);
void simdgroup_barrier();
void threadgroup_barrier();

// Metal's 16-bit floats.
struct Bfloat {
  bf16 value;
  explicit Bfloat(float x) : value(to_bf16(x)) {}
  explicit operator float() const { return to_float(value); }
};
struct Half {
  f16 value;
  explicit Half(float x) : value(to_f16(x)) {}
  explicit operator float() const { return to_float(value); }
};

}  // namespace pagoda::metal_emulation

// As bodies name them.
// NOLINTBEGIN(readability-identifier-naming)
namespace metal {

using pagoda::metal_emulation::simd_max;
using pagoda::metal_emulation::simd_sum;

enum class mem_flags { mem_threadgroup };
inline void threadgroup_barrier(mem_flags) {
  pagoda::metal_emulation::threadgroup_barrier();
}
inline void simdgroup_barrier(mem_flags) {
  pagoda::metal_emulation::simdgroup_barrier();
}
inline float exp(float x) {
  return std::exp(x);
}
inline float tanh(float x) {
  return std::tanh(x);
}
inline float fma(float a, float b, float c) {
  return std::fma(a, b, c);
}
template <typename T>
T max(T a, T b) {
  return std::max(a, b);
}
template <typename T>
T min(T a, T b) {
  return std::min(a, b);
}

}  // namespace metal
// NOLINTEND(readability-identifier-naming)
