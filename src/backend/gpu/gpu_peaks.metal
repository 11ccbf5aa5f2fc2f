// Measures how fast a GPU reads, and how fast it multiplies and adds. 256 threads per group.
#include "backend/gpu/kernel.metal.h"
// Included after kernel.metal.h, which is the first header of every .metal file:
#include "backend/gpu/gpu_peaks_metal.h"

// Writes each word's index into the word; p.count words per threadgroup.
[[kernel]] void gpu_peaks_fill(device uint* out [[buffer(0)]],
                               constant GpuPeaksParameters& p [[buffer(1)]], PAGODA_THREAD) {
  const uint count = uint(p.count);
  const size_t first = size_t(group.x) * count;
  for (uint i = thread_id; i < count; i += 256) out[first + i] = uint(first + i);
}

// Adds up words, modulo 2^32: p.count words per threadgroup, a multiple of 8,192. Each lane has
// eight loads of 16 bytes in flight. before and out: [groups * 8], a sum per SIMD group; out =
// before + sum.
[[kernel]] void gpu_peaks_read(device const uint4* in [[buffer(0)]],
                               device const uint* before [[buffer(1)]],
                               device uint* out [[buffer(2)]],
                               constant GpuPeaksParameters& p [[buffer(3)]], PAGODA_THREAD) {
  const uint num_vectors = uint(p.count) / 4;
  device const uint4* const from = in + size_t(group.x) * num_vectors;
  uint sum = 0;
  for (uint i = thread_id; i < num_vectors; i += 8 * 256) {
    uint4 held[8];
#pragma unroll
    for (uint j = 0; j < 8; ++j) held[j] = from[i + 256 * j];
#pragma unroll
    for (uint j = 0; j < 8; ++j) {
      sum += (held[j].x + held[j].y) + (held[j].z + held[j].w);
    }
  }
  sum = simd_sum(sum);
  const uint place = 8 * group.x + simd_group;
  if (lane == 0) out[place] = before[place] + sum;
}

// Each lane computes eight chains of fma, p.count rounds of 64. before and out: [threads]. The
// chains start at before + 0 to before + 7; out is their mean.
[[kernel]] void gpu_peaks_fma(device const float* before [[buffer(0)]],
                              device float* out [[buffer(1)]],
                              constant GpuPeaksParameters& p [[buffer(2)]], PAGODA_THREAD) {
  const uint place = 256 * group.x + thread_id;
  float sums[8];
  for (uint j = 0; j < 8; ++j) sums[j] = before[place] + float(j);
  for (int round = 0; round < p.count; ++round) {
#pragma unroll
    for (uint i = 0; i < 64; ++i) {
#pragma unroll
      for (uint j = 0; j < 8; ++j) sums[j] = fma(sums[j], p.factor, p.added);
    }
  }
  float total = 0.0f;
  for (uint j = 0; j < 8; ++j) total = total + sums[j];
  out[place] = 0.125f * total;
}
