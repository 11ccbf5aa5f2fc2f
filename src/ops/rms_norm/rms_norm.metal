// rms_norm on Apple GPUs.
#include "backend/gpu/kernel.metal.h"
#include "ops/rms_norm/rms_norm_metal.h"
#include "ops/rms_norm/rms_norm_row.metal.h"

// Each threadgroup norms rows_per_group rows. A thread takes kWide values at once: 4 if dim is a
// multiple of 4, else 1. Its next values are simd_groups_per_row * 32 * kWide further.
//   x    rows at strides; out [rows, dim]
template <int kWide>
[[kernel]] void rms_norm(device const float* x [[buffer(0)]],
                         device const float* weight [[buffer(1)]], device float* out [[buffer(2)]],
                         constant RmsNormParameters& p [[buffer(3)]],
                         threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  const int simd_groups = p.simd_groups_per_row;
  const int row = int(group.x) * p.rows_per_group + int(simd_group) / simd_groups;
  const int first = (int(simd_group) % simd_groups * 32 + int(lane)) * kWide;
  const int step = simd_groups * 32 * kWide;
  const int end = row < p.num_rows ? p.dim : 0;
  const bool is_aligned = p.is_aligned != 0;
  device const float* from =
      x + size_t(row / p.num_heads) * p.token_stride + size_t(row % p.num_heads) * p.head_stride;
  device float* to = out + size_t(row) * p.dim;

  float held[kHeldRuns * kWide];
  float more[kWide];
  float squares = 0.0f;
#pragma unroll
  for (int run = 0; run < kHeldRuns; ++run) {
    const int i = first + run * step;
    if (i < end) {
      load_run<kWide>(from + i, is_aligned, held + run * kWide);
      squares = add_squares<kWide>(held + run * kWide, squares);
    }
  }
  for (int i = first + kHeldRuns * step; i < end; i += step) {
    load_run<kWide>(from + i, is_aligned, more);
    squares = add_squares<kWide>(more, squares);
  }
  const float sum = sum_over_row(squares, simd_groups, shared, int(simd_group), int(lane));
  const float inverse = inverse_rms(sum, p.dim, p.eps);
#pragma unroll
  for (int run = 0; run < kHeldRuns; ++run) {
    const int i = first + run * step;
    if (i < end) store_normed<kWide>(held + run * kWide, inverse, weight + i, to + i);
  }
  for (int i = first + kHeldRuns * step; i < end; i += step) {
    load_run<kWide>(from + i, is_aligned, more);
    store_normed<kWide>(more, inverse, weight + i, to + i);
  }
}
