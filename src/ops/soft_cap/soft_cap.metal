// soft_cap on Apple GPUs.
#include "backend/gpu/kernel.metal.h"
#include "ops/rms_norm/float_run.metal.h"
#include "ops/soft_cap/soft_cap_metal.h"

// Each thread takes kWide elements of a row: 4 if every row begins at a multiple of 16 bytes, else
// 1. x, out [rows, dim]
template <int kWide>
[[kernel]] void soft_cap(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
                         constant SoftCapParameters& p [[buffer(2)]], PAGODA_THREAD) {
  const int i = ((int(group.x) * 8 + int(simd_group)) * 32 + int(lane)) * kWide;
  if (i >= p.dim) return;
  const size_t begin = size_t(group.y) * p.dim + i;
  float numbers[kWide];
  load_run<kWide>(x + begin, true, numbers);
  for (int j = 0; j < kWide; ++j) numbers[j] = p.cap * precise::tanh(numbers[j] / p.cap);
  store_run<kWide>(numbers, out + begin);
}
