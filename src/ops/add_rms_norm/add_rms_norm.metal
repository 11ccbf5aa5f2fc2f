// add_rms_norm on Apple GPUs.
#include "backend/gpu/kernel.metal.h"
#include "ops/add_rms_norm/add_rms_norm_metal.h"
#include "ops/rms_norm/rms_norm_row.metal.h"

// Returns the factor that norms a row of delta, of which this thread reads the values from `first`
// on. `shared` is as in sum_over_row().
template <int kWide>
inline float delta_factor(device const float* delta, int first, int step, int end,
                          constant AddRmsNormParameters& p, threadgroup float* shared,
                          int simd_group, int lane) {
  float values[kWide];
  float squares = 0.0f;
  for (int i = first; i < end; i += step) {
    load_run<kWide>(delta + i, p.is_aligned != 0, values);
    squares = add_squares<kWide>(values, squares);
  }
  return inverse_rms(sum_over_row(squares, p.simd_groups_per_row, shared, simd_group, lane), p.dim,
                     p.eps);
}

// Reads kWide values of x and delta. Writes sum_factor * (x + factor * delta) to `sum` and `added`.
// With norms_delta, delta is normed first, by the row's factor `inverse` and the weights.
template <int kWide>
inline void add_run(device const float* x, device const float* delta,
                    device const float* delta_norm, float inverse, constant AddRmsNormParameters& p,
                    device float* sum, thread float* added) {
  const bool is_aligned = p.is_aligned != 0;
  float other[kWide];
  load_run<kWide>(x, is_aligned, added);
  load_run<kWide>(delta, is_aligned, other);
  if (p.norms_delta != 0) {
    float gains[kWide];
    load_run<kWide>(delta_norm, true, gains);
    for (int i = 0; i < kWide; ++i) other[i] = other[i] * inverse * gains[i];
  }
  for (int i = 0; i < kWide; ++i) added[i] = (added[i] + other[i] * p.delta_factor) * p.sum_factor;
  store_run<kWide>(added, sum);
}

// Adds and norms rows, which are distributed over threads as in rms_norm. x, delta, sum, normed
// [rows, dim]. Without is_normed, weight is not read and normed is not written; without norms_delta,
// delta_norm is not read. `shared` has two floats for each SIMD group: one for each norm.
template <int kWide>
[[kernel]] void add_rms_norm(device const float* x [[buffer(0)]],
                             device const float* delta [[buffer(1)]],
                             device const float* weight [[buffer(2)]],
                             device const float* delta_norm [[buffer(3)]],
                             device float* sum [[buffer(4)]], device float* normed [[buffer(5)]],
                             constant AddRmsNormParameters& p [[buffer(6)]],
                             threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  const int simd_groups = p.simd_groups_per_row;
  const int row = int(group.x) * p.rows_per_group + int(simd_group) / simd_groups;
  const int first = (int(simd_group) % simd_groups * 32 + int(lane)) * kWide;
  const int step = simd_groups * 32 * kWide;
  const int end = row < p.num_rows ? p.dim : 0;
  const size_t begin = size_t(row) * p.dim;
  threadgroup float* shared_of_delta = shared + simd_groups * p.rows_per_group;
  const float inverse_of_delta =
      p.norms_delta == 0 ? 1.0f
                         : delta_factor<kWide>(delta + begin, first, step, end, p, shared_of_delta,
                                               int(simd_group), int(lane));

  float held[kHeldRuns * kWide];
  float more[kWide];
  float squares = 0.0f;
#pragma unroll
  for (int run = 0; run < kHeldRuns; ++run) {
    const int i = first + run * step;
    if (i < end) {
      add_run<kWide>(x + begin + i, delta + begin + i, delta_norm + i, inverse_of_delta, p,
                     sum + begin + i, held + run * kWide);
      squares = add_squares<kWide>(held + run * kWide, squares);
    }
  }
  for (int i = first + kHeldRuns * step; i < end; i += step) {
    add_run<kWide>(x + begin + i, delta + begin + i, delta_norm + i, inverse_of_delta, p,
                   sum + begin + i, more);
    squares = add_squares<kWide>(more, squares);
  }
  if (p.is_normed == 0) return;
  const float total = sum_over_row(squares, simd_groups, shared, int(simd_group), int(lane));
  const float inverse = inverse_rms(total, p.dim, p.eps);
#pragma unroll
  for (int run = 0; run < kHeldRuns; ++run) {
    const int i = first + run * step;
    if (i < end) store_normed<kWide>(held + run * kWide, inverse, weight + i, normed + begin + i);
  }
  for (int i = first + kHeldRuns * step; i < end; i += step) {  // sums that this thread wrote
    load_run<kWide>(sum + begin + i, true, more);
    store_normed<kWide>(more, inverse, weight + i, normed + begin + i);
  }
}
