// One row of rms_norm, normed by one or several SIMD groups of a threadgroup; rms_norm and
// add_rms_norm share it.
#ifndef PAGODA_RMS_NORM_ROW_METAL_H
#define PAGODA_RMS_NORM_ROW_METAL_H

#include "ops/rms_norm/float_run.metal.h"

// Runs of a row that a thread keeps in registers between the two passes; it reads the rest of a
// long row twice.
enum { kHeldRuns = 4 };

// Adds the squares of kWide values.
template <int kWide>
inline float add_squares(thread const float* values, float sum) {
  for (int i = 0; i < kWide; ++i) sum = fma(values[i], values[i], sum);
  return sum;
}

// Returns the sum of `value` over a row, to all threads of the row. A row has `simd_groups` SIMD
// groups in sequence. `shared` has a float for each SIMD group of the threadgroup. The order of the
// sum depends on `simd_groups` alone.
inline float sum_over_row(float value, int simd_groups, threadgroup float* shared, int simd_group,
                          int lane) {
  const float sum = simd_sum(value);
  if (simd_groups == 1) return sum;
  if (lane == 0) shared[simd_group] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int first = simd_group / simd_groups * simd_groups;
  return simd_sum(lane < simd_groups ? shared[first + lane] : 0.0f);
}

// Returns the factor that norms a row.
inline float inverse_rms(float sum_of_squares, int dim, float eps) {
  return 1.0f / precise::sqrt(sum_of_squares / float(dim) + eps);
}

// Writes kWide values, normed.
template <int kWide>
inline void store_normed(thread const float* values, float inverse, device const float* weight,
                         device float* out) {
  float normed[kWide];
  load_run<kWide>(weight, true, normed);
  for (int i = 0; i < kWide; ++i) normed[i] = values[i] * inverse * normed[i];
  store_run<kWide>(normed, out);
}

#endif  // PAGODA_RMS_NORM_ROW_METAL_H
