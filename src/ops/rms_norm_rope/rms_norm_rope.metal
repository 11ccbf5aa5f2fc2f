// rms_norm_rope on Apple GPUs.
#include "backend/mlx/kernel.metal.h"
#include "ops/rms_norm_rope/rms_norm_rope_metal.h"
#include "ops/rope/rope_head.metal.h"

// A SIMD group a head. x at strides; weight [kHeadDim]; angles [tokens, 2, kHeadDim / 2];
// out [tokens, heads, kHeadDim]
template <int kHeadDim>
[[kernel]] void rms_norm_rope(device const float* x [[buffer(0)]],
                              device const float* weight [[buffer(1)]],
                              device const float* angles [[buffer(2)]],
                              device float* out [[buffer(3)]],
                              constant RmsNormRopeParameters& p [[buffer(4)]], PAGODA_THREAD) {
  const int head = int(group.x) * 8 + int(simd_group);
  const size_t token = group.y;
  if (head >= p.num_heads) return;
  const bool is_halves = p.is_halves != 0;
  float a[HeadSplit<kHeadDim>::kShare];
  float b[HeadSplit<kHeadDim>::kShare];
  load_head<kHeadDim>(x + token * p.token_stride + size_t(head) * p.head_stride, is_halves,
                      p.is_aligned != 0, int(lane), a, b);
  norm_head<kHeadDim>(weight, p.eps, is_halves, int(lane), a, b);
  turn_head<kHeadDim>(angles + token * kHeadDim, int(lane), a, b);
  store_head<kHeadDim>(a, b, is_halves, int(lane), out + (token * p.num_heads + head) * kHeadDim);
}
