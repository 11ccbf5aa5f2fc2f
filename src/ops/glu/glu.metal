// glu on Apple GPUs.
#include "backend/mlx/kernel.metal.h"
#include "ops/glu/gated.metal.h"
#include "ops/glu/glu_metal.h"
#include "ops/rms_norm/float_run.metal.h"

// A thread takes kWide elements of a row: 4 where every half of a row begins at a multiple of 16
// bytes, else 1. gate_up [tokens, 2 * dim], out [tokens, dim]
template <int kWide>
[[kernel]] void glu(device const float* gate_up [[buffer(0)]], device float* out [[buffer(1)]],
                    constant GluParameters& p [[buffer(2)]], PAGODA_THREAD) {
  const int i = ((int(group.x) * 8 + int(simd_group)) * 32 + int(lane)) * kWide;
  if (i >= p.dim) return;
  const size_t begin = size_t(group.y) * p.dim;
  float gates[kWide];
  float ups[kWide];
  load_run<kWide>(gate_up + 2 * begin + i, true, gates);
  load_run<kWide>(gate_up + 2 * begin + p.dim + i, true, ups);
  for (int j = 0; j < kWide; ++j) ups[j] = gated(gates[j], ups[j], p.is_gelu != 0);
  store_run<kWide>(ups, out + begin + i);
}
