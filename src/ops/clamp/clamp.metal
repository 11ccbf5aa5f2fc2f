// clamp on Apple GPUs.
#include "backend/gpu/kernel.metal.h"
#include "ops/clamp/clamp_metal.h"
#include "ops/rms_norm/float_run.metal.h"

// Each thread takes kWide elements of a row: 4 if every row begins at a multiple of 16 bytes, else
// 1. x [rows, dim] at p.row_stride; out [rows, dim]
template <int kWide>
[[kernel]] void clamp_numbers(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
                              constant ClampParameters& p [[buffer(2)]], PAGODA_THREAD) {
  const int i = ((int(group.x) * 8 + int(simd_group)) * 32 + int(lane)) * kWide;
  if (i >= p.dim) return;
  float numbers[kWide];
  load_run<kWide>(x + size_t(group.y) * p.row_stride + i, true, numbers);
  for (int j = 0; j < kWide; ++j) {
    // Comparisons keep a NaN, which min and max would replace by the limit.
    numbers[j] = numbers[j] < -p.limit ? -p.limit : (numbers[j] > p.limit ? p.limit : numbers[j]);
  }
  store_run<kWide>(numbers, out + size_t(group.y) * p.dim + i);
}
