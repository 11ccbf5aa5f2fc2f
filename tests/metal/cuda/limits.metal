// Measures a GPU's peak speeds by code like ours: how fast it reads, copies, multiplies and adds.
#include "backend/gpu/kernel.metal.h"
#include "tests/metal/cuda/limits_metal.h"

enum { kAtOnce = 8 };

inline uint joined(uint4 x) {
  return x.x ^ x.y ^ x.z ^ x.w;
}

// Reads `count` vectors. out: [num_threads], written so that the compiler removes no read.
[[kernel]] void limits_read(device const uint4* in [[buffer(0)]], device uint* out [[buffer(1)]],
                            constant LimitsParameters& p [[buffer(2)]], PAGODA_THREAD) {
  const int id = int(group.x) * 256 + int(32 * simd_group + lane);
  uint sum = 0;
  for (int i = id; i < p.count; i += kAtOnce * p.num_threads) {
    uint4 held[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) held[j] = in[min(i + j * p.num_threads, p.count - 1)];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) sum = sum ^ joined(held[j]);
  }
  out[id] = sum;
}

// Copies `count` vectors, a multiple of the number of threads.
[[kernel]] void limits_copy(device const uint4* in [[buffer(0)]], device uint4* out [[buffer(1)]],
                            constant LimitsParameters& p [[buffer(2)]], PAGODA_THREAD) {
  const int id = int(group.x) * 256 + int(32 * simd_group + lane);
  for (int i = id; i < p.count; i += p.num_threads) out[i] = in[i];
}

// Computes 2 * kAtOnce * 64 operations per round and thread.
[[kernel]] void limits_fma(device const float* in [[buffer(0)]], device float* out [[buffer(1)]],
                           constant LimitsParameters& p [[buffer(2)]], PAGODA_THREAD) {
  const int id = int(group.x) * 256 + int(32 * simd_group + lane);
  const float factor = in[0];
  const float added = in[1];
  float sums[kAtOnce];
  for (int j = 0; j < kAtOnce; ++j) sums[j] = float(id + j);
  for (int round = 0; round < p.count; ++round) {
#pragma unroll
    for (int i = 0; i < 64; ++i) {
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) sums[j] = fma(sums[j], factor, added);
    }
  }
  float sum = 0.0f;
  for (int j = 0; j < kAtOnce; ++j) sum = sum + sums[j];
  out[id] = sum;
}
