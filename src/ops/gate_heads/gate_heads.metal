// gate_heads on Apple GPUs.
#include "backend/gpu/kernel.metal.h"
#include "ops/gate_heads/gate_heads_metal.h"
#include "ops/rms_norm/float_run.metal.h"

// Returns log(1 + exp(x)). Where the exponential is small, its series keeps all bits.
inline float softplus(float x) {
  const float small = precise::exp(-abs(x));
  const float rest = small < 1e-3f ? small * (1.0f - small * (0.5f - small * (1.0f / 3)))
                                   : precise::log(1.0f + small);
  return max(x, 0.0f) + rest;
}

// A thread takes kWide elements of a row: 4 if every row begins at a multiple of 16 bytes, else 1.
// x, out [tokens, dim], gate [tokens, dim / width]
template <int kWide>
[[kernel]] void gate_heads(device const float* x [[buffer(0)]],
                           device const float* gate [[buffer(1)]], device float* out [[buffer(2)]],
                           constant GateHeadsParameters& p [[buffer(3)]], PAGODA_THREAD) {
  const int i = ((int(group.x) * 8 + int(simd_group)) * 32 + int(lane)) * kWide;
  if (i >= p.dim) return;
  const size_t row = size_t(group.y);
  device const float* const gates = gate + row * (p.dim / p.width);
  float numbers[kWide];
  load_run<kWide>(x + row * p.dim + i, true, numbers);
  for (int j = 0; j < kWide; ++j) numbers[j] *= softplus(gates[(i + j) / p.width]);
  store_run<kWide>(numbers, out + row * p.dim + i);
}
