// rms_norm_rope on Apple GPUs.
#include "backend/gpu/kernel.metal.h"
#include "ops/rms_norm_rope/rms_norm_rope_metal.h"
#include "ops/rope/rope_head.metal.h"

// Each SIMD group takes a head. x at strides; weight [kHeadDim]; angles [tokens, 2, num_pairs]; out
// [tokens, heads, kHeadDim]
template <int kHeadDim>
[[kernel]] void rms_norm_rope(device const float* x [[buffer(0)]],
                              device const float* weight [[buffer(1)]],
                              device const float* angles [[buffer(2)]],
                              device float* out [[buffer(3)]],
                              constant RmsNormRopeParameters& p [[buffer(4)]], PAGODA_THREAD) {
  const int head = int(group.x) * 8 + int(simd_group);
  const size_t token = group.y;
  if (head >= p.num_heads) return;
  const HeadPairs pairs = head_pairs(p.is_halves, p.num_pairs);
  float a[HeadSplit<kHeadDim>::kShare];
  float b[HeadSplit<kHeadDim>::kShare];
  load_head<kHeadDim>(x + token * p.token_stride + size_t(head) * p.head_stride, pairs,
                      p.is_aligned != 0, int(lane), a, b);
  norm_head<kHeadDim>(weight, p.eps, pairs, int(lane), a, b);
  rotate_head<kHeadDim>(angles + token * 2 * p.num_pairs, pairs, int(lane), a, b);
  store_head<kHeadDim>(a, b, pairs, int(lane), out + (token * p.num_heads + head) * kHeadDim);
}
