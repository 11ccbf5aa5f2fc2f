// glu on Apple GPUs.
#include "backend/gpu/kernel.metal.h"
#include "ops/glu/gated.metal.h"
#include "ops/glu/glu_metal.h"
#include "ops/rms_norm/float_run.metal.h"

// A thread takes kWide elements of a row: 4 if every row begins at a multiple of 16 bytes, else 1.
// gate, up [tokens, dim] at strides, out [tokens, dim]
template <int kWide>
[[kernel]] void glu(device const float* gate [[buffer(0)]], device const float* up [[buffer(1)]],
                    device float* out [[buffer(2)]], constant GluParameters& p [[buffer(3)]],
                    PAGODA_THREAD) {
  const int i = ((int(group.x) * 8 + int(simd_group)) * 32 + int(lane)) * kWide;
  if (i >= p.dim) return;
  const size_t row = size_t(group.y);
  float gates[kWide];
  float ups[kWide];
  load_run<kWide>(gate + row * p.gate_stride + i, true, gates);
  load_run<kWide>(up + row * p.up_stride + i, true, ups);
  for (int j = 0; j < kWide; ++j) ups[j] = gated(gates[j], ups[j], p.activation, p.alpha, p.limit);
  store_run<kWide>(ups, out + row * p.dim + i);
}
