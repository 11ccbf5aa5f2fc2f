// select_rows on Apple GPUs.
#include "backend/gpu/kernel.metal.h"
#include "ops/rms_norm/float_run.metal.h"
#include "ops/select_rows/select_rows_metal.h"

// Each thread takes kWide elements of a row: 4 if every row begins at a multiple of 16 bytes, else
// 1. x [tokens, dim], rows [n], out [n, dim]
template <int kWide>
[[kernel]] void select_rows(device const float* x [[buffer(0)]],
                            device const int* rows [[buffer(1)]], device float* out [[buffer(2)]],
                            constant SelectRowsParameters& p [[buffer(3)]], PAGODA_THREAD) {
  const int i = ((int(group.x) * 8 + int(simd_group)) * 32 + int(lane)) * kWide;
  if (i >= p.dim) return;
  float values[kWide];
  load_run<kWide>(x + size_t(rows[group.y]) * p.dim + i, true, values);
  store_run<kWide>(values, out + size_t(group.y) * p.dim + i);
}
